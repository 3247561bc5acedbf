"""Initial values of parameters. They are drawn on the host, so they are the same on a CPU and on a GPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError

# Stands for the generator where no values are drawn, since all of them will be read from a file
UNDRAWN = np.random.default_rng(0)


def xavier_uniform(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Draw from the uniform distribution between -b and b, where b = sqrt(6 / (I + O)).

    Args:
        rng: The generator.
        shape: The shape of the result, usually (I, O).
        dtype: The dtype of the result.

    Source: Glorot and Bengio 2010.
    """
    if rng is UNDRAWN:
        return _zeros(shape, dtype)
    bound = math.sqrt(6 / sum(shape))
    return rng.uniform(-bound, bound, shape).astype(dtype)


def normal(rng: np.random.Generator, shape: tuple[int, ...], std: float, dtype: Any) -> Array:
    """Draw from the normal distribution with mean 0.

    Args:
        rng: The generator.
        shape: The shape of the result.
        std: The standard deviation.
        dtype: The dtype of the result.
    """
    if rng is UNDRAWN:
        return _zeros(shape, dtype)
    return (rng.standard_normal(shape) * std).astype(dtype)


def default_rng(rng: np.random.Generator | None) -> np.random.Generator:
    """Return the generator, or a new one with seed 0, so that a layer without a generator is reproducible.

    Raises:
        UserError: If rng is a seed: all layers of a model would draw the same values from it.
    """
    if rng is None:
        return np.random.default_rng(0)
    if not isinstance(rng, np.random.Generator):
        raise UserError(f"rng is {rng!r}: give a generator, such as np.random.default_rng(0)")
    return rng


def _zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return zeros that take no memory and cannot be written to: a single number, seen from every index.

    Module.flatten replaces them by parts of the buffer of the model, which can be written to.
    """
    return np.broadcast_to(np.zeros((), dtype), shape)
