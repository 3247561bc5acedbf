"""Patterns of shapes: the result has the wrong shape."""

from itertools import combinations
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.language import say
from npformer.mistakes.patterns import same


def describe_shape(right: Array, found: Array, rtol: float = 1e-9, dy: Any = None) -> str:
    """Return a sentence about a result whose shape differs from the correct one.

    Args:
        right: The correct result.
        found: The result with another shape.
        rtol: The relative tolerance of comparisons.
        dy: The gradient of the output, if the result is a gradient.
    """
    return say(
        "its shape is {shape} and should be {due}{why}",
        shape=found.shape,
        due=right.shape,
        why=reason_of_shape(right, found, rtol, dy),
    )


def reason_of_shape(right: Array, found: Array, rtol: float = 1e-9, dy: Any = None) -> str:
    """Return a colon and the reason why a result has another shape than the correct one, or "".

    Args:
        right: The correct result.
        found: The result with another shape.
        rtol: The relative tolerance of comparisons.
        dy: The gradient of the output, if the result is a gradient.
    """
    if found.dtype.kind not in "bif":
        return ""
    right, found = right.astype(np.float64), found.astype(np.float64)
    if not np.isfinite(found).all():
        return ""
    if found.size == right.size:
        if same(found.reshape(right.shape), right, rtol):
            return say(": the numbers are correct, but they have another shape")
        if found.ndim == right.ndim == 2 and same(found.T, right, rtol):
            return say(": it is transposed")
    if found.ndim == right.ndim and _is_unrepeated(right, found, rtol):
        short = say(" and ").join(str(axis) for axis, n in enumerate(found.shape) if n != right.shape[axis])
        return say(": its numbers are correct, and must be repeated along axis {names}", names=short)
    if found.shape == (*right.shape, *right.shape[-1:]) and right.ndim and np.shape(dy) == right.shape:
        for matrices in (found, found.swapaxes(-1, -2)):
            if same((matrices @ np.asarray(dy)[..., None])[..., 0], right, rtol):
                return say(
                    ": it is the Jacobian, the derivatives of each output: its product with dy is missing"
                )
    axes = _axes(found, right, rtol)
    if axes is not None:
        return say(": its sum over {axes} is correct, so an axis must still be summed", axes=axes)
    axes = _axes(right, found, rtol)
    if axes is not None:
        return say(
            ": it is the sum of the correct result over {axes}, but this sum must not be computed", axes=axes
        )
    if found.ndim == 1 < right.ndim and found.size < right.size and np.isin(found, right).all():
        return say(": it holds only some of the correct numbers: does a Boolean index remove the others?")
    if found.ndim > right.ndim:
        return say(": must an axis still be summed?")
    return say(": is an axis summed that must not be summed?") if found.ndim < right.ndim else ""


def _is_unrepeated(right: Array, found: Array, rtol: float) -> bool:
    """Return whether the found array becomes the right one if its axes of length 1 are repeated."""
    fits = all(n in (1, length) for n, length in zip(found.shape, right.shape, strict=True))
    return fits and same(np.broadcast_to(found, right.shape), right, rtol)


def _axes(large: Array, small: Array, rtol: float) -> str | None:
    """Return the axes over which the large array sums to the small one, as words."""
    for count in range(1, large.ndim + 1):
        for axes in combinations(range(large.ndim), count):
            for keepdims in (False, True):
                total = large.sum(axes, keepdims=keepdims)
                if total.shape == small.shape and same(total, small, rtol):
                    names = ", ".join(map(str, axes))
                    return (
                        say("axis {names}", names=names) if count == 1 else say("axes {names}", names=names)
                    )
    return None
