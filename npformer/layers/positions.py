"""Position vectors as layers: learned ones, and tables of sinusoids."""

import numpy as np

from npformer.layers.init import default_rng, normal
from npformer.module import Module, Parameter
from npformer.positions import sinusoids


class LearnedPositions(Module):
    """A learned vector for each position. Shapes: length T -> y (T, D); weight (max_length, D)."""

    def __init__(self, max_length, d_model, *, rng=None, dtype=np.float32):
        self.weight = Parameter(normal(default_rng(rng), (max_length, d_model), d_model**-0.5, dtype))

    def forward(self, length, start=0):
        """Positions start .. start + length - 1. Returns (y, cache)."""
        return self.weight.value[start : start + length], (start, length)

    def backward(self, dy, cache):
        """Returns nothing: a position is a number, not an array."""
        start, length = cache
        # y = weight[start : start + length], the same for every sentence: dy (B, T, D)
        self.weight.grad[start : start + length] += dy.sum(0)


class FixedPositions(Module):
    """A table of sinusoids. Shapes: length T -> y (T, D)."""

    def __init__(self, max_length, d_model, *, layout="interleaved", dtype=np.float32):
        self.table = sinusoids(max_length, d_model, layout).astype(dtype)

    def forward(self, length, start=0):
        """Positions start .. start + length - 1. Returns (y, cache)."""
        return self.table[start : start + length], None

    def backward(self, dy, cache):
        """Nothing is learned here."""
