"""Dropout, alone and with the ReLU: one GPU kernel forward, one backward, and one byte of mask per entry."""

from typing import Any

from npformer.backend import Array, Generator, fused
from npformer.kernels import shared
from npformer.kernels.choice import backward_of
from npformer.kernels.shared import draw_dropout_mask


class DropoutMask(shared.DropoutMask):
    """The cache of this dropout."""

    __slots__ = ()


class ReluDropoutCache(shared.ReluDropoutCache):
    """The cache of this relu_dropout."""

    __slots__ = ()


@fused
def drop(xp: Any, x: Array, kept: Array, factor: float) -> Array:
    """Compute y = x kept factor.

    Args:
        xp: The array module.
        x: The input.
        kept: Bool, of the shape of x. False at dropped entries.
        factor: 1 / (1 - p).
    """
    return x * kept * factor


@fused
def relu_drop(xp: Any, x: Array, kept: Array | None, factor: float | None) -> Array:
    """Compute y = dropout(max(0, x)).

    Args:
        xp: The array module.
        x: The input.
        kept: Bool, of the shape of x. False at dropped entries. None without dropout.
        factor: 1 / (1 - p), or None without dropout.
    """
    y = xp.where(x > 0, x, 0)
    return y if kept is None else xp.where(kept, y * factor, 0)


@fused
def relu_drop_gradient(xp: Any, dy: Array, y: Array, factor: float) -> Array:
    """Return the gradient of the input of relu_drop.

    Args:
        xp: The array module.
        dy: The gradient of the output.
        y: The output. y > 0 at the entries that are positive and not dropped.
        factor: 1 / (1 - p), or 1 without dropout.
    """
    return xp.where(y > 0, dy * factor, 0)


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
    return (x, None) if dropout_mask is None else (drop(x, *dropout_mask), DropoutMask(*dropout_mask))


@backward_of(DropoutMask)
def dropout_backward(dy: Array, cache: DropoutMask) -> Array:
    """Return dx = dy dropout_mask."""
    return drop(dy, *cache)


def relu_dropout(x: Array, p: float, rng: Generator | None) -> tuple[Array, ReluDropoutCache]:
    """Compute y = dropout(max(0, x)) in one GPU kernel.

    Args:
        x: The input, of shape (..., F).
        p: The dropout probability.
        rng: The generator. It is needed if p > 0.

    Returns:
        y, of the shape of x, and the cache.
    """
    dropout_mask = draw_dropout_mask(x, p, rng)
    y = relu_drop(x, *(dropout_mask or (None, None)))
    return y, ReluDropoutCache(y, 1.0 if dropout_mask is None else dropout_mask.factor)


@backward_of(ReluDropoutCache)
def relu_dropout_backward(dy: Array, cache: ReluDropoutCache) -> Array:
    """Return dx = dy factor where y > 0, and 0 elsewhere."""
    return relu_drop_gradient(dy, *cache)
