"""Dropout with a mask of bools, one byte for each entry, and the ReLU with dropout in one pass."""

import numpy as np

from npformer.backend import Array, Generator
from npformer.kernels import shared
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.blocks import blocks
from npformer.kernels.shared import as_rows, draw_dropout_mask


class DropoutMask(shared.DropoutMask):
    """The cache of this dropout."""

    __slots__ = ()


class ReluDropoutCache(shared.ReluDropoutCache):
    """The cache of this relu_dropout."""

    __slots__ = ()


def dropout(x: Array, p: float, rng: Generator | None) -> tuple[Array, DropoutMask | None]:
    """Compute y = x dropout_mask, as npformer.functional.dropout does.

    Args:
        x: The input.
        p: The dropout probability.
        rng: The generator. It is needed if p > 0.

    Returns:
        y, of the shape of x, and the cache.
    """
    dropout_mask = draw_dropout_mask(x, p, rng)
    if dropout_mask is None:
        return x, None
    y = x * dropout_mask.kept
    y *= dropout_mask.factor
    return y, DropoutMask(*dropout_mask)


@backward_of(DropoutMask)
def dropout_backward(dy: Array, cache: DropoutMask) -> Array:
    """Return dx = dy dropout_mask."""
    dx = dy * cache.kept
    dx *= cache.factor
    return dx


def draw_factors(x: Array, p: float, rng: Generator | None) -> Array | None:
    """Draw the dropout mask of the plain pair, an array of floats, or return None if p is 0.

    Args:
        x: An array with the shape and the dtype of the mask.
        p: The dropout probability.
        rng: The generator. It is needed if p > 0.
    """
    dropout_mask = draw_dropout_mask(x, p, rng)
    return (
        None if dropout_mask is None else np.multiply(dropout_mask.kept, dropout_mask.factor, dtype=x.dtype)
    )


def relu_dropout(x: Array, p: float, rng: Generator | None) -> tuple[Array, ReluDropoutCache]:
    """Compute y = dropout(max(0, x)) in one pass.

    Args:
        x: The input, of shape (..., F).
        p: The dropout probability.
        rng: The generator. It is needed if p > 0.

    Returns:
        y, of the shape of x, and the cache.
    """
    dropout_mask = draw_dropout_mask(x, p, rng)
    y = np.empty(x.shape, x.dtype)  # in C order, so that as_rows(y) is a view of y
    rows, out = as_rows(x), as_rows(y)
    for block in blocks(*rows.shape):
        selected = rows[block] > 0
        if dropout_mask is not None:
            selected &= as_rows(dropout_mask.kept)[block]
        _select(rows[block], selected, out[block])
        if dropout_mask is not None:
            out[block] *= dropout_mask.factor
    return y, ReluDropoutCache(y, 1.0 if dropout_mask is None else dropout_mask.factor)


@backward_of(ReluDropoutCache)
def relu_dropout_backward(dy: Array, cache: ReluDropoutCache) -> Array:
    """Return dx = dy factor where y > 0, and 0 elsewhere."""
    dx = np.empty(dy.shape, dy.dtype)
    rows, y, out = as_rows(dy), as_rows(cache.y), as_rows(dx)
    for block in blocks(*rows.shape):
        _select(rows[block], y[block] > 0, out[block])
        if cache.factor != 1:
            out[block] *= cache.factor
    return dx


def _select(x: Array, selected: Array, out: Array) -> None:
    """Write x to `out` where `selected` is True, and +0 elsewhere, as fast as a product of two arrays.

    A product of floats would be -0 for negative numbers and NaN for infinite ones. So the bits of each float
    are multiplied as one integer: the product with 1 does not change them, and the product with 0 has the
    bits of +0.
    """
    bits = np.dtype(f"i{x.itemsize}")
    np.multiply(x.view(bits), selected, out=out.view(bits))
