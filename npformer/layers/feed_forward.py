"""FeedForward: two linear maps with an activation between, at each position by itself."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional.activations import ACTIVATIONS
from npformer.functional.linear import LinearCache
from npformer.kernels import relu_dropout, relu_dropout_backward
from npformer.layers.dropout import Dropout
from npformer.layers.init import default_rng
from npformer.layers.linear import Linear
from npformer.module import Module


class FeedForwardCache(NamedTuple):
    """The cache of FeedForward."""

    inner: LinearCache
    activation: Any
    keep: Any  # what dropout kept, where the activation is not ReLU; else that pair's cache holds it
    outer: LinearCache


class FeedForward(Module):
    """y = f(x W1 + b1) W2 + b2, with f = max(0, .) in the paper.

    Shapes: x (..., D) -> y (..., D); inner (D, F), outer (F, D). Source: Vaswani et al. 2017, section 3.3.
    """

    def __init__(self, d_model, d_ff, *, activation="relu", rate=0.0, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        self.inner = Linear(d_model, d_ff, rng=rng, dtype=dtype)
        self.outer = Linear(d_ff, d_model, rng=rng, dtype=dtype)
        self.activation = activation
        self.dropout = Dropout(rate)

    def forward(self, x, *, train=False, rng=None):
        """Returns (y, cache)."""
        h, inner = self.inner.forward(x)  # (..., F)
        if self.activation == "relu":  # with dropout it is one pair
            h, activation = relu_dropout(h, self.dropout.rate if train else 0, rng)
            keep = None
        else:
            activate, _ = ACTIVATIONS[self.activation]
            h, activation = activate(h)
            h, keep = self.dropout.forward(h, train=train, rng=rng)
        y, outer = self.outer.forward(h)  # (..., D)
        return y, FeedForwardCache(inner, activation, keep, outer)

    def backward(self, dy, cache):
        """Returns dx."""
        dh = self.outer.backward(dy, cache.outer)
        if self.activation == "relu":
            dh = relu_dropout_backward(dh, cache.activation)
        else:
            _, activate_backward = ACTIVATIONS[self.activation]
            dh = self.dropout.backward(dh, cache.keep)
            dh = activate_backward(dh, cache.activation)
        return self.inner.backward(dh, cache.inner)
