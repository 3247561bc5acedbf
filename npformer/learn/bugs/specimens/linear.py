"""A specimen with a bug: the linear map."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn.module import Module, Parameter


class LinearCache(NamedTuple):
    """The cache of Linear."""

    x: Any  # (..., I)


class Linear(Module):
    """y = x weight + bias.

    Shapes: x (..., I) -> y (..., O); weight (I, O), bias (O,).
    """

    def __init__(self, n_in=8, n_out=4, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.weight = Parameter((rng.standard_normal((n_in, n_out)) * n_in**-0.5).astype(dtype))
        self.bias = Parameter(np.zeros(n_out, dtype))

    def forward(self, x):
        """Return (y, cache)."""
        return x @ self.weight.value + self.bias.value, LinearCache(x)

    def backward(self, dy, cache):
        """Return dx."""
        rows = cache.x.reshape(-1, cache.x.shape[-1])  # (N, I)
        # the gradient of a batch is the mean of the gradients of its rows
        drows = dy.reshape(-1, dy.shape[-1]) / len(rows)  # (N, O)
        # y = x weight + bias
        self.weight.grad += rows.T @ drows  # (I, O)
        self.bias.grad += drows.sum(0)  # (O,)
        return dy @ self.weight.value.T  # (..., I)
