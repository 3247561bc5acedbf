"""A specimen with a bug: layer normalization."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn.module import Module, Parameter


class LayerNormCache(NamedTuple):
    """The cache of LayerNorm."""

    xhat: Any  # (..., D) the input with mean 0 and variance 1 along each row
    rstd: Any  # (..., 1) one over the standard deviation


class LayerNorm(Module):
    """y = gain xhat + bias, with xhat = (x - mean) / sqrt(variance + eps) over the last axis.

    Shapes: x (..., D) -> y (..., D); gain and bias (D,).
    """

    def __init__(self, d_model=8, *, eps=1e-5, dtype=np.float64):
        self.eps = eps
        self.gain = Parameter(np.ones(d_model, dtype))
        self.bias = Parameter(np.zeros(d_model, dtype))

    def forward(self, x):
        """Return (y, cache)."""
        centered = x - x.mean(-1, keepdims=True)  # (..., D)
        variance = (centered * centered).mean(-1, keepdims=True)  # (..., 1)
        rstd = 1 / np.sqrt(variance + self.eps)  # (..., 1)
        xhat = centered * rstd  # (..., D)
        return self.gain.value * xhat + self.bias.value, LayerNormCache(xhat, rstd)

    def backward(self, dy, cache):
        """Return dx."""
        xhat, rstd = cache
        rows = tuple(range(dy.ndim - 1))  # gain and bias are used in every row
        # y = gain xhat + bias
        self.bias.grad += dy.sum(rows)  # (D,)
        self.gain.grad += (dy * xhat).sum(rows)  # (D,)
        # xhat = (x - mean) rstd: the gradient loses its mean and its part along xhat
        along = (dy * xhat).mean(-1, keepdims=True)  # (..., 1)
        dx = rstd * (dy - dy.mean(-1, keepdims=True) - xhat * along)
        return self.gain.value * dx  # (..., D)
