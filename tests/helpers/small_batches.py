"""A small model and batches for it, for the tests of workers and ranks."""

import numpy as np

from npformer import Transformer, TransformerConfig
from npformer.data.loader import make_batch


def make_model(dtype=np.float64, **changes):
    settings = {"d_model": 8, "d_ff": 12, "n_heads": 2, "n_layers": 2, "max_length": 16} | changes
    config = TransformerConfig(source_vocab=20, target_vocab=20, **settings)
    return Transformer(config, rng=np.random.default_rng(0), dtype=dtype)


def make_batches(*sizes):
    rng = np.random.default_rng(7)

    def sentence():
        return rng.integers(4, 20, rng.integers(1, 9)).tolist()

    return [make_batch([(sentence(), sentence()) for _ in range(size)]) for size in sizes]
