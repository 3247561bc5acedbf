"""Patterns of terms: a known term is missing, or was added once too often."""

from collections.abc import Iterator

import numpy as np

from npformer.backend import Array
from npformer.checking.diagnosis_context import DiagnosisContext


def residual(context: DiagnosisContext) -> str:
    """Recognize that the difference is dy itself: the residual connection."""
    if np.shape(context.dy) != context.right.shape or not context.right.ndim:
        return ""
    if context.same(context.right - context.dy, context.found):
        return "the term dy is missing from it: the residual connection was left out"
    if context.same(context.right + context.dy, context.found):
        return "it contains dy once too often: the residual connection was added twice"
    return ""


def along_axis(context: DiagnosisContext) -> str:
    """Recognize a difference that is constant along an axis: the term through a mean or a sum is missing."""
    for axis in reversed(range(context.right.ndim)):
        if context.right.shape[axis] < 2:
            continue
        mean = context.difference.mean(axis, keepdims=True)
        if mean.any() and context.same(context.difference, np.broadcast_to(mean, context.right.shape)):
            return (
                f"along axis {axis} it differs from the correct one by a constant: the term from the mean "
                "or the sum over that axis is missing"
            )
    return ""


def along_array(context: DiagnosisContext) -> str:
    """Recognize a difference that is, row by row, a multiple of a known array, such as a softmax."""
    for name, array in _candidates(context):
        for axis in reversed(range(context.right.ndim)):
            if context.right.shape[axis] < 2:
                continue
            c = _coefficient(context.difference, array, axis)
            if context.same(context.difference, c * array):
                through = "variance" if _is_normalized(array, axis) else "sum"
                return (
                    f"along axis {axis} it differs from the correct one by a multiple of {name}: the term "
                    f"from the {through} over that axis {_error_of_term(context, array, axis, c)}"
                )
    return ""


def two_terms(context: DiagnosisContext) -> str:
    """Recognize a difference that is, row by row, a number plus a multiple of a normalized array."""
    axis = context.right.ndim - 1
    for name, array in context.alike():
        if axis < 0 or array.shape[axis] < 4 or not _is_normalized(array, axis):
            continue
        rest = context.difference - context.difference.mean(axis, keepdims=True)
        if context.same(rest, _coefficient(rest, array, axis) * array):
            return (
                f"along axis {axis} it differs from the correct one by a constant and a multiple of {name}: "
                "the terms from the mean and from the variance are missing"
            )
    return ""


def _candidates(context: DiagnosisContext) -> Iterator[tuple[str, Array]]:
    """Yield the known arrays of the size of the result, and exp of those that are logarithms."""
    for name, array in context.alike():
        if _is_dy(context, array):
            continue  # dy would match wherever dx equals dy
        yield name, array
        if (array <= 0).all():
            yield f"exp({name})", np.exp(array)


def _is_dy(context: DiagnosisContext, array: Array) -> bool:
    return np.size(context.dy) == array.size and context.same(array, np.reshape(context.dy, array.shape))


def _coefficient(difference: Array, array: Array, axis: int) -> Array:
    """Return the number c of each row for which c array is nearest to the difference (least squares)."""
    square = (array * array).sum(axis, keepdims=True)
    return (difference * array).sum(axis, keepdims=True) / np.where(square == 0, 1, square)


def _is_normalized(array: Array, axis: int) -> bool:
    """Return whether the rows have mean 0 and a variance of nearly 1, as after layer norm."""
    return bool(np.abs(array.mean(axis)).max() < 1e-9 and np.abs((array * array).mean(axis) - 1).max() < 0.05)


def _error_of_term(context: DiagnosisContext, array: Array, axis: int, c: Array) -> str:
    """Describe the error in the term array · sum(dy array) of softmax, or array · sum(dy) of log-softmax."""
    if np.ndim(context.dy) and np.size(context.dy) == context.right.size:
        dy = context.dy.reshape(context.right.shape)
        for term in ((dy * array).sum(axis, keepdims=True), dy.sum(axis, keepdims=True)):
            for times, text in ((1, "is missing"), (2, "has the wrong sign"), (-1, "occurs twice")):
                if context.same(c, times * term):
                    return text
            if context.same(c - term, np.broadcast_to((c - term).mean(), c.shape)):
                return "is the same number for all rows: compute the sum over that axis only, for each row"
    return "is missing or wrong"


def another_array(context: DiagnosisContext) -> str:
    """Recognize a result that is an input or an array of the cache."""
    for name, array in context.alike():
        if not _is_dy(context, array) and context.same(context.found, array):
            return f"it equals {name} itself: a gradient must depend on dy"
    return ""


def only_a_factor(context: DiagnosisContext) -> str:
    """Recognize found = dy, or dy times one known array: the chain rule is incomplete."""
    if np.size(context.dy) != context.right.size or not np.ndim(context.dy):
        return ""
    dy = np.reshape(context.dy, context.right.shape)
    if context.same(context.found, dy):
        return "it is dy itself: the derivative of this step is left out"
    for name, array in context.alike():
        if context.same(context.found, dy * array):
            return f"it is only dy · {name}: another term of the derivative is missing"
    return ""
