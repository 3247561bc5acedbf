"""A specimen with a bug: a layer that saves memory by computing its activations twice."""

from typing import Any, NamedTuple

import numpy as np

from npformer.layers import FeedForward
from npformer.module import Module


class CheckpointedCache(NamedTuple):
    """The cache of Checkpointed: no activations, only what is needed to make them again."""

    x: Any  # (..., D)
    train: bool
    rng: Any


class Checkpointed(Module):
    """y = layer(x), whose cache is thrown away: backward runs forward once more to have it.

    Memory is paid for with time. Shapes: as the layer's. Source: Chen et al. 2016.
    """

    def __init__(self, layer=None):
        self.layer = layer or FeedForward(8, 16, rate=0.2, dtype=np.float64)

    def forward(self, x, *, train=False, rng=None):
        """Returns (y, cache)."""
        y, _ = self.layer.forward(x, train=train, rng=rng)
        return y, CheckpointedCache(x, train, rng)

    def backward(self, dy, cache):
        """Returns dx."""
        x, train, rng = cache
        _, layer_cache = self.layer.forward(x, train=train, rng=rng)
        return self.layer.backward(dy, layer_cache)
