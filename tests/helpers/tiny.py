"""A tiny model, a batch and random numbers that several tests share."""

import numpy as np

from npformer.models.transformer import Transformer, TransformerConfig, shifted_right

SIZES = {
    "source_vocab": 11,
    "target_vocab": 9,
    "d_model": 8,
    "d_ff": 12,
    "n_heads": 2,
    "n_layers": 2,
    "max_length": 12,
    "tied": "none",
    "dropout": 0.0,
}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def tiny_config(**changes):
    """Return a configuration with two layers, d_model 8 and no dropout."""
    return TransformerConfig(**(SIZES | changes))


def tiny_model(dtype=np.float64, seed=0, kind=Transformer, **changes):
    """Return a model of that configuration with random gains and biases instead of the initial 1 and 0."""
    model = kind(tiny_config(**changes), rng=np.random.default_rng(seed), dtype=dtype)
    rng = np.random.default_rng(seed + 1)
    for parameter in model.parameters():
        if parameter.value.ndim == 1:
            parameter.value += 0.3 * rng.standard_normal(parameter.shape).astype(dtype)
    return model


def tiny_batch():
    """Return (source, target_in, target), the shorter sentences padded at the end."""
    source = np.array([[4, 5, 6, 7, 10, 3], [8, 9, 3, 0, 0, 0], [5, 3, 0, 0, 0, 0]])
    target = np.array([[4, 7, 5, 8, 3], [6, 4, 5, 3, 0], [8, 3, 0, 0, 0]])
    return source, shifted_right(target, 2), target
