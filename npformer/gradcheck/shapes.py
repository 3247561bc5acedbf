"""Clues of shapes: what a result of the wrong shape looks like."""

from itertools import combinations

import numpy as np

from npformer.gradcheck.scene import same


def describe_shape(right, found, loose=1e-9):
    """A sentence on a result whose shape differs from the right one's."""
    text = f"its shape is {found.shape} and should be {right.shape}"
    return text + (_why(right, found, loose) if found.dtype.kind in "bif" else "")


def _why(right, found, loose):
    right, found = right.astype(np.float64), found.astype(np.float64)
    if not np.isfinite(found).all():
        return ""
    if found.size == right.size:
        if same(found.reshape(right.shape), right, loose):
            return ": the numbers are right, in another shape"
        if found.ndim == right.ndim == 2 and same(found.T, right, loose):
            return ": it is transposed"
    axes = _axes(found, right, loose)
    if axes is not None:
        return f": summed over {axes} it would be right, so an axis is not summed"
    axes = _axes(right, found, loose)
    if axes is not None:
        return f": it is summed over {axes} of the right one, which must stay"
    if found.ndim > right.ndim:
        return ": an axis not summed?"
    return ": an axis summed that must stay?" if found.ndim < right.ndim else ""


def _axes(large, small, loose):
    """The axes over which the large one sums to the small one, as words."""
    for count in range(1, large.ndim + 1):
        for axes in combinations(range(large.ndim), count):
            for keepdims in (False, True):
                total = large.sum(axes, keepdims=keepdims)
                if total.shape == small.shape and same(total, small, loose):
                    return f"ax{'i' if count == 1 else 'e'}s {', '.join(map(str, axes))}"
    return None
