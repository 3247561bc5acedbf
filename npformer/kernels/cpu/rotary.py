"""The rotation of queries and keys, written into the result with one more array of half its size."""

import numpy as np

from npformer.backend import Array
from npformer.functional.rotary import ROTARY_LAYOUTS, rotary_pairs
from npformer.functional.rotary import RotaryCache as PlainRotaryCache
from npformer.kernels.choice import backward_of
from npformer.validation import require_choice


class RotaryCache(PlainRotaryCache):
    """The cache of this rotate."""

    __slots__ = ()


def rotate(x: Array, cos: Array, sin: Array, layout: str = "halves") -> tuple[Array, RotaryCache]:
    """Rotate each pair (a, b) of x to (a cos - b sin, a sin + b cos), as npformer.functional.rotate does.

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
    a, b = x[..., first], x[..., second]  # (..., T, R/2)
    y = np.empty_like(x)
    y[..., width:] = x[..., width:]
    product = np.empty_like(a)
    np.multiply(a, cos, out=y[..., first])
    y[..., first] -= np.multiply(b, sin, out=product)
    np.multiply(a, sin, out=y[..., second])
    y[..., second] += np.multiply(b, cos, out=product)
    return y, RotaryCache(cos, sin, layout)


@backward_of(RotaryCache)
def rotate_backward(dy: Array, cache: RotaryCache) -> Array:
    """Return dx, of shape (..., T, K): the rotation of dy by the opposite angle."""
    cos, sin, layout = cache
    dx, _ = rotate(dy, cos, -sin, layout)
    return dx
