"""The rows of a report for tensors: each gradient beside the derivative of the forward pass."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import Array, Generator, is_array
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import METHOD_NAMES, hides_slopes, signs
from npformer.checking.diagnosis import ENTRIES, NumericGradients, diagnose
from npformer.checking.draw import LARGE, Draw, Kinks
from npformer.checking.report import UNDECIDED, CheckRow
from npformer.checking.shapes import reason_of_shape
from npformer.checking.stairs import misled_by_stairs
from npformer.errors import quantity


def tensor_rows(
    name: str, draw: Draw, rng: Generator, direction: Callable[[Generator, Any], Array] = signs
) -> list[CheckRow]:
    """Check the gradient of each tensor and return one row for each.

    Args:
        name: The name of the checked object.
        draw: A dy with its gradients.
        rng: The generator of directions.
        direction: A function that draws a direction of a shape.
    """
    correct = NumericGradients(draw.target, draw.dy, draw.methods)
    return [
        _check_tensor(name, tensor, draw, correct, direction(rng, value.shape) * draw.units[tensor], rng)
        for tensor, value in draw.target.tensors.items()
    ]


def _check_tensor(
    name: str, tensor: str, draw: Draw, correct: NumericGradients, v: Array, rng: Generator
) -> CheckRow:
    """Check the gradient of one tensor along a direction v."""
    target, g, method = draw.target, draw.grads[tensor], draw.methods[tensor]
    value, how = target.tensors[tensor], METHOD_NAMES[method]
    tolerance = draw.tolerance(tensor)

    def row(
        error: float, entry: tuple[int, ...] | None = None, why: str = "", *, undecided: bool = False
    ) -> CheckRow:
        return CheckRow(name, tensor, error, how, tolerance, entry, why, undecided)

    malformed = _malformed(draw, correct, tensor)
    if malformed:
        return row(np.inf, None, malformed)
    if not np.isfinite(g).all():  # the product of a NaN and 0 is NaN, so bisection cannot find it
        entry = _index_of(int(np.argmin(np.isfinite(g))), value.shape)
        return row(np.nan, entry, diagnose(correct, tensor, g, tolerance))
    error = draw.error({tensor: v})
    hidden = 0.0 if error <= tolerance else draw.hidden_error({tensor: v})
    if method == "difference" and hidden <= LARGE:
        tolerance = max(tolerance, hidden)
    seems_right = error <= tolerance
    is_inexact = not seems_right and error <= hidden
    may_be_zero = not seems_right and (is_inexact or method == "complex")
    is_zero = may_be_zero and draw.is_rounding({tensor: v}, rng)
    if method == "difference" and _is_hidden(target, {tensor: v}, seems_right=seems_right or is_zero):
        return row(np.inf, None, UNDECIDED, undecided=True)
    if seems_right and not draw.crosses_a_kink({tensor: v}):
        return row(error)
    if is_zero:
        return row(0.0, None, "the gradient is 0 up to rounding errors")
    kinks = draw.at_kinks(tensor, tolerance, rng) if value.size <= ENTRIES else Kinks([], alone=seems_right)
    if kinks.alone and (kinks.entries or seems_right):
        many = f"{len(kinks.entries)} of {quantity(value.size, 'entry', 'entries')} at a kink"
        if not kinks.together:
            why = "the gradient along several of them is none that the kink allows: is a tie counted twice?"
            return row(np.inf, None, f"{many}, and {why}")
        between = f"{many}, with a gradient between the one-sided derivatives"
        return row(error if seems_right else 0.0, None, between if kinks.entries else "")
    if is_inexact:
        return row(error, None, UNDECIDED, undecided=True)
    entry = _first_wrong_entry(draw, tensor, v, kinks.entries, tolerance, rng)
    return row(error, entry, diagnose(correct, tensor, g, tolerance))


def _is_hidden(target: CheckTarget, directions: dict[str, Array], *, seems_right: bool) -> bool:
    """Return whether a difference cannot know the slope along directions."""
    return (seems_right and hides_slopes(target, directions)) or misled_by_stairs(target, directions)


def _first_wrong_entry(
    draw: Draw, tensor: str, v: Array, at_kinks: list[int], tolerance: float, rng: Generator
) -> tuple[int, ...]:
    """Return the index of the first wrong entry of a tensor that is at no kink.

    With entries ±1, errors might cancel in a part of the tensor, so the entries of v get different sizes.
    "not <=" stands in place of ">", because an error of NaN is a failure as well.
    """
    uneven = v * rng.uniform(0.5, 1.5, v.shape)
    if at_kinks:
        uneven.reshape(-1)[at_kinks] = 0
    return first_wrong_entry(lambda part: not draw.error({tensor: part}) <= tolerance, uneven)


def _malformed(draw: Draw, correct: NumericGradients, tensor: str) -> str:
    """Return what is wrong with the type or the shape of a gradient, or ""."""
    g, value = draw.grads[tensor], draw.target.tensors[tensor]
    dtype = np.asarray(g).dtype
    if not isinstance(g, (np.ndarray, np.generic, float)) and not is_array(g):
        return f"the gradient is a {type(g).__name__}: return an array"
    if dtype.kind != "f" or dtype.itemsize < 8:
        return f"the gradient has dtype {dtype} and the tensor float64: a part of it was computed in {dtype}"
    if np.shape(g) == value.shape:
        return ""
    reason = ""
    if value.size <= ENTRIES:
        reason = reason_of_shape(correct.of(tensor).reshape(value.shape), np.asarray(g), dy=draw.dy)
    reason = reason or ": must an axis be summed?"
    return f"the gradient has shape {np.shape(g)} and the tensor {value.shape}{reason}"


def first_wrong_entry(is_wrong: Callable[[Array], bool], v: Array) -> tuple[int, ...]:
    """Return the index of the first entry with a wrong gradient.

    Each step halves the number of entries that are left, so a tensor of a million entries takes twenty
    evaluations.

    Args:
        is_wrong: A function of a direction: True if the numeric and the analytic derivative along it differ.
        v: A direction along which they differ, of the shape of the tensor.
    """
    start, end = 0, v.size
    while end - start > 1:
        middle = (start + end) // 2
        if is_wrong(_only(v, start, middle)):
            end = middle
        else:
            start = middle
    return _index_of(start, v.shape)


def _index_of(entry: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of an entry of the flat tensor."""
    return tuple(int(i) for i in np.unravel_index(entry, shape))


def _only(v: Array, start: int, end: int) -> Array:
    """Return the direction v with 0 at all entries but start .. end - 1."""
    part = np.zeros(v.size)
    part[start:end] = v.reshape(-1)[start:end]
    return part.reshape(v.shape)
