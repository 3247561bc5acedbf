"""Rotary positions, Su et al. 2021: queries and keys are rotated by angles that grow with their positions.

The K numbers of a vector form K / 2 pairs. At position t, pair i is rotated by the angle t base^(-2i / K).
The dot product of a rotated query at t and a rotated key at s depends on the positions only through t - s,
since rotating both by the same angle does not change it. Values are not rotated.

There are two layouts. "interleaved" pairs the neighbours 2i and 2i + 1, as the paper and GPT-J do. "halves"
pairs i of the first half with i of the second half, as GPT-NeoX and the Llama models of Hugging Face do. The
layouts differ by a permutation of the columns, so a model can learn the same functions with both.

A table may be narrower than the vectors: then the first columns are rotated and the others pass unchanged, so
that they compare contents at any distance in the same way (GPT-NeoX rotates a quarter of each head).

Llama 3.1 was trained on short texts first and then on longer ones, for which it rotates more slowly: see
Llama3Scaling.
"""

import math
from typing import NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.validation import require_choice

ROTARY_LAYOUTS = ("halves", "interleaved")


class Llama3Scaling(NamedTuple):
    """The change of the angles with which Llama 3.1 reads longer texts. The defaults are its settings.

    A pair of numbers whose angle turns around at least `high` times within the original context keeps its
    angle. One that turns around at most `low` times turns `factor` times more slowly, so that the longer
    context shows it no angle that training did not show. Between the two, the speed is interpolated.

    Source: Llama 3.1, the function apply_scaling of its reference implementation.
    """

    factor: float = 8.0
    low: float = 1.0
    high: float = 4.0
    original_context: int = 8192

    def scale(self, speeds: Array) -> Array:
        """Return the scaled angles per position, of the same shape (K/2,)."""
        turns = self.original_context * speeds / (2 * math.pi)
        share = np.clip((turns - self.low) / (self.high - self.low), 0, 1)  # of the unchanged speed
        return speeds * (share + (1 - share) / self.factor)


def rotary_table(
    positions: Array, width: int, base: float = 10000.0, scaling: Llama3Scaling | None = None
) -> tuple[Array, Array]:
    """Return the cosine and the sine of the angle t base^(-2i / K) for each position t and each pair i.

    The tables are computed on the host in float64.

    Args:
        positions: The positions t, integers of shape (...).
        width: The width K of queries and keys.
        base: The base of the angles. The wavelengths of the pairs go from 2 pi to about 2 pi base.
        scaling: The change of the angles for a longer context, or None.

    Returns:
        cos and sin, of shape (..., K/2), float64.

    Raises:
        UserError: If K is odd, or if the base is not above 0.

    Source: Su et al. 2021, section 3.2.2.
    """
    if width < 2 or width % 2:
        raise UserError(
            f"rotary positions rotate pairs of numbers, and the width of a head is {width}: make it even"
        )
    if not base > 0:
        raise UserError(f"the base of rotary positions is {base}: it must be a number above 0")
    speeds = float(base) ** (-np.arange(0, width, 2) / width)  # (K/2,) the angles at position 1
    if scaling is not None:
        speeds = scaling.scale(speeds)
    angle = np.asarray(positions)[..., None] * speeds  # (..., K/2)
    return np.cos(angle), np.sin(angle)


@cache_class
class RotaryCache(NamedTuple):
    """The cache of rotate."""

    cos: Array  # (..., T, K/2)
    sin: Array  # (..., T, K/2)
    layout: str


def rotate(x: Array, cos: Array, sin: Array, layout: str = "halves") -> tuple[Array, RotaryCache]:
    """Rotate each pair (a, b) of x to (a cos - b sin, a sin + b cos).

    Args:
        x: Queries or keys, of shape (..., T, K).
        cos: The cosines of the angles, of shape (..., K/2), or (..., R/2) to rotate the first R columns only.
            The axes before the last one broadcast.
        sin: Their sines, of the same shape.
        layout: "halves" or "interleaved".

    Returns:
        y, of shape (..., T, K), and the cache.

    Raises:
        UserError: If there is no such layout.

    Source: Su et al. 2021, equation 34.
    """
    require_choice("layout", layout, ROTARY_LAYOUTS)
    width = 2 * cos.shape[-1]  # R
    first, second = rotary_pairs(layout, width)
    a, b = x[..., first], x[..., second]  # (..., T, R/2)
    y = array_module(x).empty_like(x)  # (..., T, K)
    y[..., first] = a * cos - b * sin
    y[..., second] = a * sin + b * cos
    y[..., width:] = x[..., width:]  # no columns, if all are rotated
    return y, RotaryCache(cos, sin, layout)


def rotate_backward(dy: Array, cache: RotaryCache) -> Array:
    """Return dx, of shape (..., T, K).

    y = R x with a rotation R, so dx = Rᵀ dy. The transpose of a rotation is the rotation by the opposite
    angle, whose cosine is the same and whose sine has the opposite sign.
    """
    cos, sin, layout = cache
    dx, _ = rotate(dy, cos, -sin, layout)
    return dx


def rotary_pairs(layout: str, width: int) -> tuple[slice, slice]:
    """Return the columns of the first and of the second number of each pair."""
    if layout == "interleaved":
        return slice(0, width, 2), slice(1, width, 2)
    return slice(0, width // 2), slice(width // 2, width)
