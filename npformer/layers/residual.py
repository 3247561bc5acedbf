"""Residual: the way round a sublayer, with dropout and the norm after or before it."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional.norm import LayerNormCache
from npformer.layers.dropout import Dropout
from npformer.layers.norm import LayerNorm
from npformer.module import Module


class ResidualCache(NamedTuple):
    """The cache of Residual: of both halves."""

    entered: LayerNormCache | None  # the norm before the sublayer, where it stands there
    keep: Any  # (..., D) dropout's factors, or None
    norm: LayerNormCache | None  # the norm after the sum, where it stands there


class Residual(Module):
    """The frame round a sublayer f, in two halves, since the sublayer stands between them.

    norm="post" (the paper):        y = norm(x + dropout(f(x)))
    norm="pre" (tensor2tensor):     y = x + dropout(f(norm(x)))

        h, entered = residual.enter(x)                # norm(x), or x itself
        h, sublayer_cache = sublayer.forward(h)
        y, cache = residual.join(x, h, entered)       # x + dropout(h), normalized or not

        dx, dh = residual.join_backward(dy, cache)
        dh = sublayer.backward(dh, sublayer_cache)
        dx = residual.enter_backward(dx, dh, cache)

    Shapes: x, h, y (..., D). Source: Vaswani et al. 2017, section 3.1; He et al. 2015.
    """

    def __init__(self, d_model, *, norm="post", rate=0.0, eps=1e-5, dtype=np.float32):
        self.pre = norm == "pre"
        self.norm = LayerNorm(d_model, eps=eps, dtype=dtype)
        self.dropout = Dropout(rate)

    def enter(self, x):
        """What the sublayer receives. Returns (h, cache)."""
        return self.norm.forward(x) if self.pre else (x, None)

    def join(self, x, h, entered=None, *, train=False, rng=None):
        """Add what the sublayer made to what went round it. Returns (y, cache)."""
        h, keep = self.dropout.forward(h, train=train, rng=rng)
        y, norm = x + h, None
        if not self.pre:
            y, norm = self.norm.forward(y)
        return y, ResidualCache(entered, keep, norm)

    def join_backward(self, dy, cache):
        """Returns (dx, dh): the gradient of the way round, and of the sublayer's output."""
        # y = norm(x + h)
        if not self.pre:
            dy = self.norm.backward(dy, cache.norm)
        # y = x + dropout(h): a sum hands its gradient to both
        return dy, self.dropout.backward(dy, cache.keep)

    def enter_backward(self, dx, dh, cache):
        """Returns dx: the way round and the way through the sublayer, added."""
        # h = norm(x)
        if self.pre:
            dh = self.norm.backward(dh, cache.entered)
        return dx + dh
