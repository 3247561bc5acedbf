"""A specimen with a bug: dropout."""

from typing import Any, NamedTuple

from npformer.nn.module import Module


class DropoutCache(NamedTuple):
    """The cache of Dropout."""

    dropout_mask: Any  # (...) the factor of each entry; None if nothing was dropped


class Dropout(Module):
    """In training, each entry becomes 0 with probability p; otherwise y = x.

    Shapes: x (...) -> y (...).
    """

    def __init__(self, p=0.5):
        self.p = p

    def forward(self, x, *, train=False, rng=None):
        """Return (y, cache)."""
        if not train or self.p == 0:
            return x, DropoutCache(None)
        dropout_mask = rng.random(x.shape) >= self.p  # (...)
        dropout_mask = dropout_mask.astype(x.real.dtype)  # the precision of x
        return x * dropout_mask, DropoutCache(dropout_mask)

    def backward(self, dy, cache):
        """Return dx."""
        # y = x dropout_mask
        return dy if cache.dropout_mask is None else dy * cache.dropout_mask
