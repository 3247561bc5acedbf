"""A specimen with a bug: a layer that saves memory by computing its activations twice."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn import Context, FeedForward
from npformer.nn.module import Module


class CheckpointedCache(NamedTuple):
    """The cache of Checkpointed: no activations, only what is needed to compute them again."""

    x: Any  # (..., D)
    train: bool
    rng: Any


class Checkpointed(Module):
    """y = layer(x), without storing the layer's cache: backward runs forward again to get it.

    This saves memory and costs time. Shapes: as the layer's. Source: Chen et al. 2016.
    """

    def __init__(self, layer=None):
        self.layer = layer or FeedForward(8, 16, dropout=0.2, dtype=np.float64)

    def forward(self, x, *, train=False, rng=None):
        """Return (y, cache)."""
        y, _ = self.layer.forward(x, Context(train, rng))
        return y, CheckpointedCache(x, train, rng)

    def backward(self, dy, cache):
        """Return dx."""
        x, train, rng = cache
        _, layer_cache = self.layer.forward(x, Context(train, rng))
        return self.layer.backward(dy, layer_cache)
