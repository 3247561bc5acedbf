"""Quantized weights: whole numbers of few bits, and one scale for a whole matrix or for each of its columns.

    q = round(weight / scale),  weight ≈ scale q,  where |q| is at most 2^(bits - 1) - 1

The scale is the smallest with which the largest number of its group still fits. The error of a number is at
most half a scale, so one large number makes the errors of its whole group large.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.validation import require_choice, require_count

GROUPS = ("tensor", "channel")
MOST_BITS = 8


class Quantized(NamedTuple):
    """A matrix of whole numbers and their scale."""

    q: Array  #: (I, O) int8
    scale: Array  #: (1, 1) one for the matrix, or (1, O) one for each column

    @property
    def value(self) -> Array:
        """The matrix scale q (I, O), with which a model computes."""
        return self.scale * self.q.astype(self.scale.dtype)


def quantize(weight: Array, bits: int, *, per: str = "channel") -> Quantized:
    """Round a weight to whole numbers of a few bits.

    Args:
        weight: The weight, of shape (I, O). Each of its O columns computes one output channel.
        bits: The number of bits, from 2 to 8. The numbers go from -(2^(bits - 1) - 1) to 2^(bits - 1) - 1.
        per: "channel" for a scale for each column, or "tensor" for one scale for the whole matrix.

    Returns:
        The whole numbers, of shape (I, O) and dtype int8 for any number of bits, and their scale. A group of
        zeros has the scale 1.

    Raises:
        UserError: If there is no such group, if the number of bits is impossible, or if the weight is no
            matrix of finite numbers.

    Source: Jacob et al. 2018, section 2.1, with the zero point 0; Krishnamoorthi 2018, section 2.2 (a scale
        for each channel).
    """
    xp = array_module(weight)
    require_choice("per", per, GROUPS)
    require_count("bits", bits)
    if not 2 <= bits <= MOST_BITS:
        raise UserError(f"bits is {bits}: give a number from 2 to {MOST_BITS}")
    if weight.ndim != 2 or not bool(xp.isfinite(weight).all()):
        raise UserError(f"the weight of shape {weight.shape} must be a matrix of finite numbers")
    largest = 2 ** (bits - 1) - 1
    peak = abs(weight).max(axis=0 if per == "channel" else None, keepdims=True)  # (1, O) or (1, 1)
    scale = xp.where(peak > 0, peak / largest, 1).astype(weight.dtype)
    return Quantized(xp.rint(weight / scale).astype(xp.int8), scale)
