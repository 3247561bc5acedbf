"""The rotation of queries and keys in one GPU kernel, which reads x once and writes the result once."""

from typing import Any

from npformer.backend import Array, array_module, fused
from npformer.functional.rotary import ROTARY_LAYOUTS, rotary_pairs
from npformer.functional.rotary import RotaryCache as PlainRotaryCache
from npformer.kernels.choice import backward_of
from npformer.validation import require_choice


class RotaryCache(PlainRotaryCache):
    """The cache of this rotate."""

    __slots__ = ()


@fused
def rotate_pairs(xp: Any, a: Array, b: Array, cos: Array, sin: Array, first: Array, second: Array) -> None:
    """Write a cos - b sin to `first`, and a sin + b cos to `second`.

    Args:
        xp: The array module.
        a, b: The first and the second number of each pair, of shape (..., T, K/2).
        cos, sin: The cosines and sines of the angles, broadcastable to (..., T, K/2).
        first, second: The same columns of the result as a and b of x, of shape (..., T, K/2).
    """
    first[...] = a * cos - b * sin
    second[...] = a * sin + b * cos


def rotate(x: Array, cos: Array, sin: Array, layout: str = "halves") -> tuple[Array, RotaryCache]:
    """Rotate each pair (a, b) of x to (a cos - b sin, a sin + b cos), as npformer.functional.rotate does.

    The result is in C order, so that the matrix products of attention need no copy of it.

    Args:
        x: Queries or keys, of shape (..., T, K).
        cos: The cosines of the angles, of shape (..., K/2), or (..., R/2) for R columns. The axes before the
            last one broadcast.
        sin: Their sines, of the same shape.
        layout: "halves" or "interleaved".

    Returns:
        y, of shape (..., T, K), and the cache.

    Raises:
        UserError: If there is no such layout.
    """
    require_choice("layout", layout, ROTARY_LAYOUTS)
    width = 2 * cos.shape[-1]  # R
    first, second = rotary_pairs(layout, width)
    y = array_module(x).empty(x.shape, x.dtype)
    y[..., width:] = x[..., width:]
    rotate_pairs(x[..., first], x[..., second], cos, sin, y[..., first], y[..., second])
    return y, RotaryCache(cos, sin, layout)


@backward_of(RotaryCache)
def rotate_backward(dy: Array, cache: RotaryCache) -> Array:
    """Return dx, of shape (..., T, K): the rotation of dy by the opposite angle."""
    cos, sin, layout = cache
    dx, _ = rotate(dy, cos, -sin, layout)
    return dx
