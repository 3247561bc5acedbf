"""A specimen with a bug: one layer that runs several times."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn import Linear
from npformer.nn.module import Module


class FeedForwardCache(NamedTuple):
    """The cache of FeedForward."""

    inner: Any
    outer: Any


class FeedForward(Module):
    """y = relu(x W1 + b1) W2 + b2. Shapes: x (..., D) -> y (..., D)."""

    def __init__(self, d_model=8, d_ff=16, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.inner = Linear(d_model, d_ff, rng=rng, dtype=dtype)
        self.outer = Linear(d_ff, d_model, rng=rng, dtype=dtype)
        self.active = np.empty(0, bool)

    def forward(self, x):
        """Return (y, cache)."""
        h, inner = self.inner.forward(x)  # (..., F)
        self.active = h.real > 0  # where the ReLU is the identity
        y, outer = self.outer.forward(np.where(self.active, h, 0))  # (..., D)
        return y, FeedForwardCache(inner, outer)

    def backward(self, dy, cache):
        """Return dx."""
        dh = self.outer.backward(dy, cache.outer)
        # h = relu(...)
        dh = np.where(self.active, dh, 0)
        return self.inner.backward(dh, cache.inner)


class Universal(Module):
    """x = x + layer(x), n times with the same layer, so that depth costs no parameters.

    Shapes: x (..., D) -> y (..., D). Source: Dehghani et al. 2019.
    """

    def __init__(self, n_times=4, d_model=8, d_ff=16, *, rng=None, dtype=np.float64):
        self.n_times = n_times
        self.layer = FeedForward(d_model, d_ff, rng=rng, dtype=dtype)

    def forward(self, x):
        """Return (y, cache)."""
        caches = []
        for _ in range(self.n_times):
            h, cache = self.layer.forward(x)
            x = x + h
            caches.append(cache)
        return x, tuple(caches)

    def backward(self, dy, cache):
        """Return dx."""
        for layer_cache in cache[::-1]:
            # x + layer(x): both terms of a sum get its gradient
            dy = dy + self.layer.backward(dy, layer_cache)
        return dy
