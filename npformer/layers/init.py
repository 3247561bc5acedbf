"""First values of the parameters, drawn on the host so that CPU and GPU start identical."""

import math

import numpy as np


def xavier_uniform(rng, shape, dtype):
    """Uniform in ±sqrt(6 / (inputs + outputs)): Glorot and Bengio 2010. Shapes: -> (I, O)."""
    bound = math.sqrt(6 / sum(shape))
    return rng.uniform(-bound, bound, shape).astype(dtype)


def normal(rng, shape, std, dtype):
    """Normal with mean 0 and the given standard deviation."""
    return (rng.standard_normal(shape) * std).astype(dtype)


def default_rng(rng):
    """The generator given, or one seeded with 0: a layer made without one is the same every time."""
    return np.random.default_rng(0) if rng is None else rng
