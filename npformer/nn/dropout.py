"""Dropout as a layer."""

from typing import Any

from npformer.backend import Array
from npformer.kernels import dropout, dropout_backward
from npformer.nn.checks import check_floats
from npformer.nn.context import INFERENCE, Context
from npformer.nn.module import Module


class Dropout(Module):
    """Dropout: y = x dropout_mask during training, and y = x otherwise. Shapes: x (...) -> y (...).

    The mask is 0 with probability p and 1 / (1 - p) otherwise.

    Source: Srivastava et al. 2014.
    """

    def __init__(self, p: float) -> None:
        self.p = p

    def forward(self, x: Array, context: Context = INFERENCE) -> tuple[Array, Any]:
        """Return y, of the shape of x, and the cache."""
        check_floats(x, (...,), "Dropout")
        return dropout(x, context.dropout(self.p), context.rng)

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of the shape of x."""
        return dropout_backward(dy, cache)
