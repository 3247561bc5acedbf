"""Dropout by bools, a byte each where factors take four; and ReLU with dropout in one pass."""

import numpy as np

from npformer.kernels.cpu.blocks import blocks
from npformer.kernels.shared import ReluDropoutCache, as_rows, draw_kept


def dropout(x, rate, rng):
    """The plain pair's y = x keep."""
    keep = draw_kept(x, rate, rng)
    if keep is None:
        return x, None
    y = x * keep.kept
    y *= keep.factor
    return y, keep


def dropout_backward(dy, cache):
    """dx = dy keep."""
    if cache is None:
        return dy
    if isinstance(cache, np.ndarray):  # factors, where a complex x went the plain way
        return dy * cache
    dx = dy * cache.kept
    dx *= cache.factor
    return dx


def draw_factors(x, rate, rng):
    """The plain pair's factors for an array of x's shape and dtype, or None where nothing is dropped."""
    keep = draw_kept(x, rate, rng)
    return None if keep is None else np.multiply(keep.kept, keep.factor, dtype=x.dtype)


def relu_dropout(x, rate=0.0, rng=None):
    """y = dropout(max(0, x)) in one pass. Shapes: x (..., F) -> y (..., F)."""
    keep = draw_kept(x, rate, rng)
    y = np.empty_like(x)
    rows, out = as_rows(x), as_rows(y)
    for block in blocks(*rows.shape):
        passed = rows[block] > 0
        if keep is not None:
            passed &= as_rows(keep.kept)[block]
        np.multiply(rows[block], passed, out=out[block])
        if keep is not None:
            out[block] *= keep.factor
    return y, ReluDropoutCache(y, 1.0 if keep is None else keep.factor)


def relu_dropout_backward(dy, cache):
    """dx = dy factor where y > 0, else 0."""
    dx = np.empty_like(dy)
    rows, y, out = as_rows(dy), as_rows(cache.y), as_rows(dx)
    for block in blocks(*rows.shape):
        np.multiply(rows[block], y[block] > 0, out=out[block])
        if cache.factor != 1:
            out[block] *= cache.factor
    return dx
