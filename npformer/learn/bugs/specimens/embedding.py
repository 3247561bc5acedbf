"""A specimen with a bug: the embedding."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn.module import Module, Parameter


class EmbeddingCache(NamedTuple):
    """The cache of Embedding."""

    ids: Any  # (...) integers


class Embedding(Module):
    """y = weight[ids]: a learned vector for each token.

    Shapes: ids (...) integers in [0, n) -> y (..., D); weight (n, D).
    """

    def __init__(self, n=20, d_model=8, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.weight = Parameter((rng.standard_normal((n, d_model)) * d_model**-0.5).astype(dtype))

    def forward(self, ids):
        """Return (y, cache)."""
        return self.weight.value[ids], EmbeddingCache(ids)

    def backward(self, dy, cache):
        """Add the gradients of the parameters; ids have no gradient."""
        # y = weight[ids]: each position adds its gradient to the row that it read
        self.weight.grad[cache.ids] += dy
