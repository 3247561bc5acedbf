"""Dropout as a layer."""

from npformer.backend import Array
from npformer.kernels import dropout, dropout_backward
from npformer.kernels.shared import DropoutMask
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.context import INFERENCE, Context
from npformer.nn.module import Module

DropoutCache = Array | DropoutMask | None  # the dropout mask, of the shape of x; None if nothing is dropped


class Dropout(Module):
    """Dropout: y = x dropout_mask during training, and y = x otherwise. Shapes: x (...) -> y (...).

    The mask is 0 with probability p and 1 / (1 - p) otherwise.

    Args:
        p: The dropout probability, at least 0 and less than 1.

    Source: Srivastava et al. 2014.
    """

    def __init__(self, p: float) -> None:
        self.p = p

    def forward(self, x: Array, context: Context = INFERENCE) -> tuple[Array, DropoutCache]:
        """Return y, of the shape of x, and the cache."""
        check_floats(x, (...,), "Dropout")
        return dropout(x, context.dropout(self.p), context.rng)

    def backward(self, dy: Array, cache: DropoutCache) -> Array:
        """Return dx, of the shape of x."""
        mask = cache.kept if isinstance(cache, DropoutMask) else cache
        if mask is not None:
            check_gradient(dy, mask.shape, "Dropout")
        return dropout_backward(dy, cache)
