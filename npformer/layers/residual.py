"""Residual: the way round a sublayer, with dropout and the norm after or before it."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional.norm import LayerNormCache
from npformer.functional.residual import ResidualNormCache
from npformer.kernels import residual_norm, residual_norm_backward
from npformer.layers.dropout import Dropout
from npformer.layers.norm import LayerNorm
from npformer.module import Module


class ResidualCache(NamedTuple):
    """The cache of Residual: of both halves."""

    entered: LayerNormCache | None  # the norm before the sublayer, where it stands there
    keep: Any  # what dropout kept, or None
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
        if self.pre:
            h, keep = self.dropout.forward(h, train=train, rng=rng)
            return x + h, ResidualCache(entered, keep, None)
        gain, bias, rate = self.norm.gain.value, self.norm.bias.value, self.dropout.rate if train else 0
        y, joined = residual_norm(x, h, gain, bias, self.norm.eps, rate, rng)
        return y, ResidualCache(entered, joined.keep, joined.norm)

    def join_backward(self, dy, cache):
        """Returns (dx, dh): the gradient of the way round, and of the sublayer's output."""
        # y = x + dropout(h): a sum hands its gradient to both
        if self.pre:
            return dy, self.dropout.backward(dy, cache.keep)
        # y = norm(x + dropout(h))
        joined = ResidualNormCache(cache.keep, cache.norm)
        dx, dh, dgain, dbias = residual_norm_backward(dy, joined)
        self.norm.gain.grad += dgain
        self.norm.bias.grad += dbias
        return dx, dh

    def enter_backward(self, dx, dh, cache):
        """Returns dx: the way round and the way through the sublayer, added."""
        # h = norm(x)
        if self.pre:
            dh = self.norm.backward(dh, cache.entered)
        return dx + dh
