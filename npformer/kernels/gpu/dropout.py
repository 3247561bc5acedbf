"""Dropout, alone and with the ReLU before it: one kernel each way, and a byte an entry to remember."""

from npformer.backend import fused, is_array
from npformer.kernels.shared import ReluDropoutCache, draw_kept


@fused
def drop(xp, x, kept, factor):
    """What dropout leaves of x: kept, bool, tells which entries, and factor makes up for the others."""
    return x * kept * factor


@fused
def relu_drop(xp, x, kept, factor):
    """What dropout leaves of max(0, x); kept is None where nothing is dropped."""
    y = xp.where(x > 0, x, 0)
    return y if kept is None else y * kept * factor


@fused
def relu_drop_gradient(xp, dy, y, factor):
    """The gradient of what relu_drop got, from that of the y it gave: y > 0 tells what passed both."""
    return xp.where(y > 0, dy * factor, 0)


def dropout(x, rate, rng):
    """The plain pair's y = x keep."""
    keep = draw_kept(x, rate, rng)
    return (x, None) if keep is None else (drop(x, *keep), keep)


def dropout_backward(dy, cache):
    """dx = dy keep."""
    if cache is None:
        return dy
    if is_array(cache):  # factors, where a complex x went the plain way
        return dy * cache
    return drop(dy, *cache)


def relu_dropout(x, rate=0.0, rng=None):
    """y = dropout(max(0, x)). Shapes: x (..., F) -> y (..., F)."""
    keep = draw_kept(x, rate, rng)
    y = relu_drop(x, *(keep or (None, None)))
    return y, ReluDropoutCache(y, 1.0 if keep is None else keep.factor)


def relu_dropout_backward(dy, cache):
    """dx = dy factor where y > 0, else 0."""
    return relu_drop_gradient(dy, *cache)
