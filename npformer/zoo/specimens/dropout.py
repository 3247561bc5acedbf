"""A specimen with a bug: dropout."""

from typing import Any, NamedTuple

from npformer.module import Module


class DropoutCache(NamedTuple):
    """The cache of Dropout."""

    keep: Any  # (...) what each entry was multiplied by; None where nothing was dropped


class Dropout(Module):
    """While training, a share `rate` of the entries, drawn anew each time, becomes 0; otherwise y = x.

    Shapes: x (...) -> y (...).
    """

    def __init__(self, rate=0.5):
        self.rate = rate

    def forward(self, x, *, train=False, rng=None):
        """Returns (y, cache)."""
        if not train or self.rate == 0:
            return x, DropoutCache(None)
        keep = rng.random(x.shape) >= self.rate  # (...)
        keep = keep.astype(x.real.dtype)  # the precision of x
        return x * keep, DropoutCache(keep)

    def backward(self, dy, cache):
        """Returns dx."""
        # y = x keep
        return dy if cache.keep is None else dy * cache.keep
