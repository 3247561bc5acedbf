"""Patterns of shapes: the result has the wrong shape."""

from itertools import combinations

import numpy as np

from npformer.backend import Array
from npformer.checking.diagnosis_context import same


def describe_shape(right: Array, found: Array, rtol: float = 1e-9) -> str:
    """Return a sentence about a result whose shape differs from the right one.

    Args:
        right: The right result.
        found: The result with another shape.
        rtol: The relative tolerance of comparisons.
    """
    text = f"its shape is {found.shape} and should be {right.shape}"
    return text + (_why(right, found, rtol) if found.dtype.kind in "bif" else "")


def _why(right: Array, found: Array, rtol: float) -> str:
    right, found = right.astype(np.float64), found.astype(np.float64)
    if not np.isfinite(found).all():
        return ""
    if found.size == right.size:
        if same(found.reshape(right.shape), right, rtol):
            return ": the numbers are right, in another shape"
        if found.ndim == right.ndim == 2 and same(found.T, right, rtol):
            return ": it is transposed"
    axes = _axes(found, right, rtol)
    if axes is not None:
        return f": summed over {axes} it would be right, so an axis is not summed"
    axes = _axes(right, found, rtol)
    if axes is not None:
        return f": it is summed over {axes} of the right one, which must stay"
    if found.ndim > right.ndim:
        return ": an axis not summed?"
    return ": an axis summed that must stay?" if found.ndim < right.ndim else ""


def _axes(large: Array, small: Array, rtol: float) -> str | None:
    """Return the axes over which the large array sums to the small one, as words."""
    for count in range(1, large.ndim + 1):
        for axes in combinations(range(large.ndim), count):
            for keepdims in (False, True):
                total = large.sum(axes, keepdims=keepdims)
                if total.shape == small.shape and same(total, small, rtol):
                    return f"ax{'i' if count == 1 else 'e'}s {', '.join(map(str, axes))}"
    return None
