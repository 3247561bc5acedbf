"""Patterns of factors: the result is zero, or the correct one times a number or an array."""

import math
from collections.abc import Iterator

import numpy as np

from npformer.backend import Array
from npformer.checking.diagnosis_context import DiagnosisContext


def nothing(context: DiagnosisContext) -> str:
    """Recognize a result that is zero and should not be, or that should be zero."""
    if not context.found.any() and context.right.any():
        return "every entry is 0: no gradient reached this tensor (is a branch or a tied weight left out?)"
    if np.abs(context.right).max(initial=0) <= context.rtol * np.abs(context.found).max(initial=0):
        return "every entry should be 0: the output does not depend on this tensor"
    return ""


def factor(context: DiagnosisContext) -> str:
    """Recognize found = c right, where c is a known number."""
    right, found = context.right.reshape(-1), context.found.reshape(-1)
    c = float(found @ right) / max(float(right @ right), np.finfo(float).tiny)
    if c == 0 or not context.same(found, c * right):
        return ""
    if math.isclose(c, -1, rel_tol=context.rtol):
        return "the sign is wrong"
    for number, what in context.numbers:
        for power, text in ((1, what), (-1, f"1/{what}"), (0.5, f"√{what}"), (-0.5, f"1/√{what}")):
            for sign, minus in ((1, ""), (-1, "-")):
                if math.isclose(c, sign * number**power, rel_tol=10 * context.rtol):
                    why = _explain(power, number, what) if context.is_gradient else ""
                    return f"it is {c:.4g} = {minus}{text} times the correct one{why}"
    if not context.is_gradient and context.right.size == 1:
        return _ratio(context, c)  # every number is some other number times a factor
    return _ratio(context, c) or f"it is {c:.6g} times the correct one"


def _ratio(context: DiagnosisContext, c: float) -> str:
    """Recognize c = a / b for two counts: the result was divided by the wrong count."""
    counts = [(n, what) for n, what in context.numbers if _is_count(what)]
    for a, of_a in counts:
        for b, of_b in counts:
            if a != b and math.isclose(c, a / b, rel_tol=10 * context.rtol):
                return (
                    f"it is {c:.4g} = {a} / {b} times the correct one, which is {of_a} divided by {of_b}: "
                    "is it divided by the wrong one of these two counts?"
                )
    return ""


def _is_count(what: str) -> bool:
    """Return whether a number counts positions or tokens, and is not a width."""
    return "(all " in what or " that are not " in what


def _explain(power: float, number: float, what: str) -> str:
    if power == -1 and number > 2:
        return " (is it averaged instead of summed?)"
    if power in (0.5, -0.5):
        return "" if _is_count(what) else " (is a factor √d left out, or applied twice?)"
    return " (is it counted twice?)" if number == 2 and power == 1 else ""


def factor_array(context: DiagnosisContext) -> str:
    """Recognize found = right / A or right A, elementwise, with a known array A."""
    for name, array in _broadcastable(context):
        if context.same(context.found * array, context.right):
            return f"the factor {name} is missing"
        if context.same(context.found, context.right * array):
            return f"the factor {name} is applied once too often"
    return ""


def _broadcastable(context: DiagnosisContext) -> Iterator[tuple[str, Array]]:
    """Yield the arrays that broadcast to the result and are not constant."""
    for name, array in context.arrays.items():
        fits = array.ndim == context.right.ndim and all(
            n in (1, m) for n, m in zip(array.shape, context.right.shape, strict=True)
        )
        if array.dtype.kind == "f" and fits and array.size > 1 and np.ptp(array) > 0:
            yield name, array


def factor_by_row(context: DiagnosisContext) -> str:
    """Recognize found = c right with a different c for each row."""
    for axis in reversed(range(context.right.ndim)):
        if context.right.shape[axis] < 2 or context.right.ndim < 2:
            continue
        square = (context.right * context.right).sum(axis, keepdims=True)
        c = (context.found * context.right).sum(axis, keepdims=True) / np.where(square == 0, 1, square)
        if c.any() and context.same(context.found, c * context.right):
            return (
                f"along axis {axis} it is the correct one times a number that differs from row to row: "
                "a factor or a normalization of each row is missing"
            )
    return ""
