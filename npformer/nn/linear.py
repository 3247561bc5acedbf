"""The linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.linear import LinearCache
from npformer.kernels import linear, linear_backward
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.init import default_rng, xavier_uniform
from npformer.nn.module import Module, Parameter
from npformer.validation import require_counts


class Linear(Module):
    """A linear layer with an optional bias: y = x weight + bias.

    Shapes: x (..., n_in) -> y (..., n_out). The weight is (n_in, n_out), and the bias is (n_out,).

    Args:
        n_in: The width of the input.
        n_out: The width of the output.
        bias: Add a learned bias.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        bias: bool = True,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_counts(n_in=n_in, n_out=n_out)
        self.weight = Parameter(xavier_uniform(default_rng(rng), (n_in, n_out), dtype))
        self.bias = Parameter(np.zeros(n_out, dtype)) if bias else None

    def forward(self, x: Array) -> tuple[Array, LinearCache]:
        """Return y, of shape (..., n_out), and the cache."""
        check_floats(x, (..., len(self.weight.value)), type(self).__name__)
        return linear(x, self.weight.value, self.bias.value if self.bias is not None else None)

    def backward(self, dy: Array, cache: LinearCache) -> Array:
        """Return dx, of shape (..., n_in)."""
        check_gradient(dy, (*cache.x.shape[:-1], self.weight.value.shape[1]), type(self).__name__)
        dx, dweight, dbias = linear_backward(dy, cache)
        self.weight.accumulate(dweight)
        if self.bias is not None:
            self.bias.accumulate(dbias)
        return dx
