"""Patterns of wrong numbers: what a wrong result and the right one say by themselves.

Each pattern recognizes one kind of difference, such as a factor, a transposition or a missing term. It takes
a DiagnosisContext and returns a sentence, or "" if it does not match.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.language import GRADER, later, phrase, say


class Count(str):
    """The description of a number that counts positions or tokens, in any language."""


@dataclass(frozen=True)
class DiagnosisContext:
    """The argument of every pattern.

    Args:
        right: The right result.
        found: The wrong result, of the same shape.
        dy: The gradient of the output, which is the argument of backward, or None.
        arrays: The inputs and the arrays of the cache by name.
        others: The right gradients of the other tensors by name.
        numbers: Pairs (number, description) that may explain a factor.
        rtol: The relative tolerance of comparisons.
        operands: The arrays of which formulas are made: the parameters, and the variables of the backward
            pass. Empty for exercises, whose diagnosis must not tell the solution.
        is_gradient: False if the result is the output of a forward pass, a mask, a table or a number.
    """

    right: Any
    found: Any
    dy: Any = None
    arrays: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    numbers: list[tuple[float, str]] = field(default_factory=list)
    rtol: float = 1e-9
    is_gradient: bool = True
    operands: dict[str, Any] = field(default_factory=dict)

    @property
    def difference(self) -> Array:
        """The difference found - right."""
        return self.found - self.right

    @property
    def wrong(self) -> Array:
        """A bool array, True at the entries that differ."""
        scale = max(np.abs(self.right).max(initial=0), np.abs(self.found).max(initial=0))
        return np.abs(self.difference) > self.rtol * scale

    def same(self, a: Array, b: Array) -> bool:
        """Return whether two arrays agree, relative to their largest entry."""
        return same(a, b, self.rtol)

    def alike(self) -> Iterator[tuple[str, Array]]:
        """Yield pairs (name, array) of the arrays of the size of the result, reshaped to its shape."""
        for name, array in self.arrays.items():
            if array.dtype.kind == "f" and array.size == self.right.size and array.size > 1:
                yield name, array.reshape(self.right.shape)


def same(a: Array, b: Array, rtol: float) -> bool:
    """Return whether two arrays agree, relative to their largest entry.

    Args:
        a, b: Arrays of the same shape.
        rtol: The largest difference that passes, divided by the largest entry.
    """
    scale = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    return bool(np.abs(a - b).max(initial=0) <= rtol * scale)


IN_FLOAT32 = later("it is correct to about seven digits: a part of it was computed in float32")
FEW_DIGITS = 1e-5  # the largest relative error of a result that was computed in float32


def has_few_digits(right: Array, found: Array) -> bool:
    """Return whether two arrays agree to the digits of float32, at the entry that differs most as well."""
    distance = np.abs(found - right)
    worst = np.unravel_index(distance.argmax(), distance.shape)
    return same(right, found, FEW_DIGITS) and bool(distance[worst] <= 1e-3 * np.abs(right[worst]))


# ---------------------------------------------------------------------------------------------------------
# Factors: the result is zero, or the correct one times a number or an array


def nothing(context: DiagnosisContext) -> str:
    """Recognize a result that is zero and should not be, or that should be zero."""
    if not context.found.any() and context.right.any():
        return say(
            "every entry is 0: no gradient reached this tensor (is a branch or a tied weight left out?)"
        )
    if np.abs(context.right).max(initial=0) <= context.rtol * np.abs(context.found).max(initial=0):
        return say("every entry should be 0: the output does not depend on this tensor")
    return ""


def factor(context: DiagnosisContext) -> str:
    """Recognize found = c right, where c is a known number."""
    right, found = context.right.reshape(-1), context.found.reshape(-1)
    c = float(found @ right) / max(float(right @ right), np.finfo(float).tiny)
    if c == 0 or abs(c - 1) < FEW_DIGITS or not context.same(found, c * right):
        return ""
    if math.isclose(c, -1, rel_tol=context.rtol):
        return say("the sign is wrong")
    for number, what in context.numbers:
        for power, text in ((1, what), (-1, f"1/{what}"), (0.5, f"√{what}"), (-0.5, f"1/√{what}")):
            for sign, minus in ((1, ""), (-1, "-")):
                if math.isclose(c, sign * number**power, rel_tol=10 * context.rtol):
                    why = _explain(power, number, what) if context.is_gradient else ""
                    return say(
                        "it is {c:.4g} = {minus}{text} times the correct one{why}",
                        c=c,
                        minus=minus,
                        text=text,
                        why=why,
                    )
    if not context.is_gradient and context.right.size == 1:
        return _ratio(context, c)  # every number is some other number times a factor
    return _ratio(context, c) or say("it is {c:.6g} times the correct one", c=c)


def _ratio(context: DiagnosisContext, c: float) -> str:
    """Recognize c = a / b for two counts: the result was divided by the wrong count."""
    counts = [(n, what) for n, what in context.numbers if _is_count(what)]
    for a, of_a in counts:
        for b, of_b in counts:
            if a != b and math.isclose(c, a / b, rel_tol=10 * context.rtol):
                return say(
                    "it is {c:.4g} = {a} / {b} times the correct one, which is {of_a} divided by {of_b}: "
                    "is it divided by the wrong one of these two counts?",
                    c=c,
                    a=a,
                    b=b,
                    of_a=of_a,
                    of_b=of_b,
                )
    return ""


def _is_count(what: str) -> bool:
    """Return whether a number counts positions or tokens, and is no width."""
    return isinstance(what, Count)


def _explain(power: float, number: float, what: str) -> str:
    if power == -1 and number > 2:
        return say(" (is it averaged instead of summed?)")
    if power in (0.5, -0.5):
        return "" if _is_count(what) else say(" (is a factor √d left out, or applied twice?)")
    return say(" (is it counted twice?)") if number == 2 and power == 1 else ""


def factor_array(context: DiagnosisContext) -> str:
    """Recognize found = right / A or right A, elementwise, with a known array A."""
    for name, array in _broadcastable(context):
        if context.same(context.found * array, context.right):
            return say("the factor {name} is missing", name=name)
        if context.same(context.found, context.right * array):
            return say("the factor {name} is applied once too often", name=name)
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
            return say(
                "along axis {axis} it is the correct one times a number that differs from row to row: a "
                "factor or a normalization of each row is missing",
                axis=axis,
            )
    return ""


# ---------------------------------------------------------------------------------------------------------
# Terms: a known term is missing, or was added once too often


def residual(context: DiagnosisContext) -> str:
    """Recognize that the difference is dy itself: the residual connection."""
    if np.shape(context.dy) != context.right.shape or not context.right.ndim:
        return ""
    if context.same(context.right - context.dy, context.found):
        return say("the term dy is missing from it: the residual connection was left out")
    if context.same(context.right + context.dy, context.found):
        return say("it contains dy once too often: the residual connection was added twice")
    return ""


def along_axis(context: DiagnosisContext) -> str:
    """Recognize a difference that is constant along an axis: the term through a mean or a sum is missing."""
    for axis in reversed(range(context.right.ndim)):
        if context.right.shape[axis] < 2:
            continue
        mean = context.difference.mean(axis, keepdims=True)
        if mean.any() and context.same(context.difference, np.broadcast_to(mean, context.right.shape)):
            return say(
                "along axis {axis} it differs from the correct one by a constant: the term from the mean "
                "or the sum over that axis is missing",
                axis=axis,
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
                through = say("variance") if _is_normalized(array, axis) else say("sum")
                return say(
                    "along axis {axis} it differs from the correct one by a multiple of {name}: the term "
                    "from the {through} over that axis {how}",
                    axis=axis,
                    name=name,
                    through=through,
                    how=_error_of_term(context, array, axis, c),
                )
    return ""


def two_terms(context: DiagnosisContext) -> str:
    """Recognize a difference that is, row by row, a number plus a multiple of an array, normalized or not."""
    axis = context.right.ndim - 1
    if axis < 0 or context.right.shape[axis] < 4:
        return ""
    for name, array in sorted(context.alike(), key=lambda pair: not _is_normalized(pair[1], axis)):
        if _is_dy(context, array):
            continue
        rest = context.difference - context.difference.mean(axis, keepdims=True)
        centered = array - array.mean(axis, keepdims=True)
        if centered.any() and context.same(rest, _coefficient(rest, centered, axis) * centered):
            return say(
                "along axis {axis} it differs from the correct one by a constant and a multiple of {name}: "
                "the terms from the mean and from the variance are missing",
                axis=axis,
                name=name,
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
            for times, text in (
                (1, say("is missing")),
                (2, say("has the wrong sign")),
                (-1, say("occurs twice")),
            ):
                if context.same(c, times * term):
                    return text
            if context.same(c - term, np.broadcast_to((c - term).mean(), c.shape)):
                return say(
                    "is the same number for all rows: compute the sum over that axis only, for each row"
                )
    return say("is missing or wrong")


def another_array(context: DiagnosisContext) -> str:
    """Recognize a result that is an input or an array of the cache."""
    for name, array in context.alike():
        if not _is_dy(context, array) and context.same(context.found, array):
            return say("it equals {name} itself: a gradient must depend on dy", name=name)
    return ""


def gate(context: DiagnosisContext) -> str:
    """Recognize a missing path through a gate: dy times the derivative of a sigmoid or tanh, and a factor."""
    if np.size(context.dy) != context.right.size or not np.ndim(context.dy):
        return ""
    dy, alike = np.reshape(context.dy, context.right.shape), dict(context.alike())
    for (name, g), factor in product(alike.items(), (np.ones(()), *alike.values())):
        if np.abs(g).max() <= 1 and np.ptp(g) > 0:
            for slope in (g * (1 - g), 1 - g * g):
                if context.same(-context.difference, dy * factor * slope):
                    return say(
                        "the path through the gate {name} is missing: the output depends on it as well",
                        name=name,
                    )
    return ""


def only_a_factor(context: DiagnosisContext) -> str:
    """Recognize found = dy, or dy times one known array: the chain rule is incomplete."""
    if np.size(context.dy) != context.right.size or not np.ndim(context.dy):
        return ""
    dy = np.reshape(context.dy, context.right.shape)
    if context.same(context.found, dy):
        return say("it is dy itself: the derivative of this step is left out")
    for name, array in context.alike():
        if context.same(context.found, dy * array):
            return say("it is only dy · {name}: another term of the derivative is missing", name=name)
    return ""


# ---------------------------------------------------------------------------------------------------------
# Places: the correct numbers are at other positions, or only some entries are wrong


def other_tensor(context: DiagnosisContext) -> str:
    """Recognize the gradient of another tensor: backward returned them in another order."""
    for name, right in context.others.items():
        if right.shape == context.found.shape and right.any() and context.same(right, context.found):
            return say("it is the same as {name}: are the two exchanged, or is a factor missing?", name=name)
    return ""


def transposed(context: DiagnosisContext) -> str:
    """Recognize two swapped axes of the same length."""
    shape = context.right.shape
    for a, b in combinations(range(context.right.ndim), 2):
        if shape[a] == shape[b] and context.same(np.swapaxes(context.right, a, b), context.found):
            where = "" if context.right.ndim == 2 else say(": axes {a} and {b} are swapped", a=a, b=b)
            return say("it is transposed{where}", where=where)
    return ""


def opposite(context: DiagnosisContext) -> str:
    """Recognize a mask in which True and False, or 1 and 0, are exchanged."""
    if set(np.unique(context.right)) == {0, 1} and np.array_equal(context.found, 1 - context.right):
        return say("every entry is the opposite of the correct one: True must mean that the query may attend")
    return ""


def other_direction(context: DiagnosisContext) -> str:
    """Recognize cumulative sums along an axis that run in the wrong direction."""
    for axis in range(context.right.ndim):
        right, found = (np.moveaxis(sums, axis, 0) for sums in (context.right, context.found))
        if np.ptp(right, axis=0).any() and np.ptp(found, axis=0).any():
            for step in (1, -1):
                terms = np.diff(right[::step], axis=0, prepend=0)
                if context.same(terms[::-1].cumsum(0)[::-1], found[::step]):
                    return say("the sums along axis {axis} run in the wrong direction", axis=axis)
    return ""


def shifted(context: DiagnosisContext) -> str:
    """Recognize entries that are shifted by one or two positions along an axis."""
    for axis, by in product(range(context.right.ndim), (1, 2)):
        right, found = np.moveaxis(context.right, axis, 0), np.moveaxis(context.found, axis, 0)
        for expected, moved, text in (
            (right[:-by], found[by:], say("late")),
            (right[by:], found[:-by], say("early")),
        ):
            if expected.size >= FEWEST - 1 and np.ptp(expected) > 0 and context.same(expected, moved):
                where = say("it is shifted: along axis {axis} every entry is", axis=axis)
                if by == 2:
                    return say(
                        "{where} two positions too {text} (must the shift go in the other direction?)",
                        where=where,
                        text=text,
                    )
                return say("{where} one position too {text}", where=where, text=text)
    return ""


def reordered_along(context: DiagnosisContext) -> str:
    """Recognize the correct numbers in another order along one axis."""
    for axis in range(context.right.ndim):
        right, found = np.sort(context.right, axis), np.sort(context.found, axis)
        if (
            np.ptp(context.right, axis=axis).any()
            and len(np.unique(right)) > 3
            and context.same(right, found)
        ):
            return say("along axis {axis} it contains the correct numbers in the wrong order", axis=axis)
    return ""


def reordered(context: DiagnosisContext) -> str:
    """Recognize the correct numbers in another order."""
    if len(np.unique(context.right)) > 3 and context.same(
        np.sort(context.right, None), np.sort(context.found, None)
    ):
        return say(
            "it contains the correct numbers in the wrong order: are axes swapped, or must axes be swapped "
            "before a reshape?"
        )
    return ""


def on_a_diagonal(context: DiagnosisContext) -> str:
    """Recognize wrong entries on one diagonal, as after < in place of <= in a mask."""
    wrong = context.wrong
    if wrong.ndim < 2 or wrong.sum() < 2:
        return ""
    offset = np.unique(np.diff(np.nonzero(wrong)[-2:], axis=0))
    if len(offset) > 1 or wrong.shape[-1] < 3 or wrong.shape[-2] < 3:
        return ""
    where = say("the diagonal") if offset[0] == 0 else say("the diagonal {offset:+d}", offset=offset[0])
    return say(
        "the wrong entries are all on {where} of the last two axes: a limit is off by one (< or <=?)",
        where=where,
    )


def repeated_rows(context: DiagnosisContext) -> str:
    """Recognize that only rows with several uses are wrong: one gradient overwrote the others."""
    for name, ids in context.arrays.items():
        rows = (
            np.flatnonzero(context.wrong.reshape(len(context.wrong), -1).any(1))
            if context.right.ndim
            else np.zeros(0, int)
        )
        if ids.dtype.kind != "i" or not len(rows) or rows.max() > max(ids.max(), 0):
            continue
        counts = np.bincount(ids.reshape(-1)[ids.reshape(-1) >= 0], minlength=len(context.right))
        if (counts[rows] > 1).all() and (counts == 1).any():  # else nothing shows that single uses are right
            return say(
                "only rows whose index occurs several times in {name} are wrong: the gradients of all uses "
                "must be added, and one overwrote the others",
                name=name,
            )
    return ""


def one_a_row(context: DiagnosisContext) -> str:
    """Recognize that in each row only the entry named by an array of ids is wrong."""
    for name, ids in context.arrays.items():
        if ids.dtype.kind != "i" or ids.size * context.right.shape[-1] != context.right.size:
            continue
        wrong = context.wrong.reshape(-1, context.right.shape[-1])
        rows, columns = np.nonzero(wrong)
        if len(rows) and len(rows) == len(set(rows)) and (ids.reshape(-1)[rows] == columns).all():
            return say(
                "only the entries at the indices {name} are wrong, one in each row: check what is subtracted",
                name=name,
            )
    return ""


def some_entries(context: DiagnosisContext) -> str:
    """Recognize that only some entries are wrong, as after a wrong mask or a missing position."""
    right, found, wrong = context.right, context.found, context.wrong
    if wrong.all() or not wrong.any():
        return ""
    share = say(
        "{count} of {size} entries are wrong{line}", count=wrong.sum(), size=wrong.size, line=_line(wrong)
    )
    if not right[wrong].any():
        return say(
            "{share}, and they should be 0: masked, dropped and padded positions get no gradient", share=share
        )
    if not found[wrong].any():
        return say(
            "{share}: they are 0 and should not be, so backward leaves out a path of the forward pass",
            share=share,
        )
    if right[wrong].all():
        c = found[wrong] / right[wrong]
        if np.ptp(c) <= context.rtol * np.abs(c).max():
            return say(
                "{share}, by the factor {c:.4g} (is a repeated index or a shared row counted wrongly?)",
                share=share,
                c=c[0],
            )
    return say(
        "{share}, and the others are correct: one position, row or branch is treated incorrectly", share=share
    )


def _line(wrong: Array) -> str:
    """Return the index that all wrong entries share along an axis, as words, or ""."""
    index = np.nonzero(wrong)
    for axis in range(wrong.ndim):
        if len(np.unique(index[axis])) == 1 and wrong.shape[axis] > 2:
            return say(", all at index {index} of axis {axis}", index=index[axis][0], axis=axis)
    return ""


def every_row_alike(context: DiagnosisContext) -> str:
    """Recognize a result that is constant along an axis and should not be."""
    for axis in range(context.right.ndim):
        if context.right.shape[axis] < 2 or np.ptp(context.found, axis=axis).any():
            continue
        if np.ptp(context.right, axis=axis).any():
            return say(
                "all entries along axis {axis} are equal: is it a sum over an axis that must not be summed?",
                axis=axis,
            )
    return ""


# ---------------------------------------------------------------------------------------------------------
# Formulas: a gradient is a sum or a product of arrays that the backward pass computes


FEWEST = 4  # entries of an array that is no multiple of another by chance


def formula(context: DiagnosisContext) -> str:
    """Recognize the formula of the correct gradient, or of a term that is missing or should not be there."""
    if context.wrong.mean() < 0.5:
        return ""  # the pattern of single entries says more
    formulas = [item for item in _formulas(context) if item[1].any()]
    right = _find(context, context.right, formulas)
    if right:
        found = _find(context, context.found, formulas)
        return (
            say("it is {found}, and {right} is correct", found=found, right=right)
            if found
            else say("{right} is correct", right=right)
        )
    missing = _find(context, -context.difference, formulas)
    if missing:
        return say("the term {missing} is missing", missing=missing)
    extra = _find(context, context.difference, formulas)
    if extra:
        return say("the term {extra} must not be there", extra=extra)
    c, term = _find_multiple(context, -context.difference, formulas)
    missing = f"{c:.4g} · {term}"
    if term and missing.removeprefix("-") == f"2 · {term}":  # a wrong sign moves a gradient by twice the term
        return say(
            "the term {missing} is missing, or the sign of {term} is wrong", missing=missing, term=term
        )
    return say("the term {missing} is missing", missing=missing) if term else ""


def _find(context: DiagnosisContext, wanted: Array, formulas: list[tuple[str, Array]]) -> str:
    for text, value in formulas:
        for sign, array in (("", value), ("-", -value)):
            if context.same(wanted, array):
                return sign + text
    return ""


def _find_multiple(
    context: DiagnosisContext, wanted: Array, formulas: list[tuple[str, Array]]
) -> tuple[float, str]:
    """Return the factor and the first formula of which the wanted array is a multiple, or (0, "")."""
    for text, value in formulas if wanted.size >= FEWEST else ():
        c = float((wanted * value).sum() / (value * value).sum())
        if context.same(wanted, c * value):
            return c, text
    return 0.0, ""


def _formulas(context: DiagnosisContext) -> Iterator[tuple[str, Array]]:
    """Yield pairs (text, array of the shape of the gradient), the short formulas first."""
    shape, operands = context.right.shape, context.operands
    for name, a in operands.items():
        if a.shape == shape:
            yield name, a
        for rows in _rows(a, shape):
            yield say("the sum of {name} over the positions", name=name), rows.sum(0).reshape(shape)
    for (name, a), (other, b) in product(operands.items(), repeat=2):
        if name <= other and _broadcast(a, b) is not None:
            both = a * b
            if both.shape == shape:
                yield f"{name} · {other}", both
            for rows in _rows(both, shape):
                yield (
                    say("the sum of {name} · {other} over the positions", name=name, other=other),
                    rows.sum(0).reshape(shape),
                )
        yield from _matrix_products(name, a, other, b, shape)


def _rows(a: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield a as rows that each have the size of the gradient, if it has more axes."""
    if a.ndim > len(shape) and a.shape[a.ndim - len(shape) :] == shape:
        yield a.reshape(-1, int(np.prod(shape)))


def _matrix_products(
    name: str, a: Array, other: str, b: Array, shape: tuple[int, ...]
) -> Iterator[tuple[str, Array]]:
    """Yield the matrix products of two arrays that have the shape of the gradient."""
    if a.ndim < 2 or b.ndim < 2:
        return
    if shape == (a.shape[-1], b.shape[-1]) and a.shape[:-1] == b.shape[:-1]:
        yield f"{name}ᵀ {other}", a.reshape(-1, shape[0]).T @ b.reshape(-1, shape[1])
    if b.ndim == 2 and a.shape[-1] == b.shape[0] and shape == (*a.shape[:-1], b.shape[1]):
        yield f"{name} {other}", a @ b
    if b.ndim == 2 and a.shape[-1] == b.shape[1] and shape == (*a.shape[:-1], b.shape[0]):
        yield f"{name} {other}ᵀ", a @ b.T
    if a.ndim == b.ndim > 2 and a.shape[:-2] == b.shape[:-2] == shape[:-2]:  # a product for each sequence
        for (left, first), (right, second) in product(_with_transpose(name, a), _with_transpose(other, b)):
            if (first.shape[-2], second.shape[-1]) == shape[-2:] and first.shape[-1] == second.shape[-2]:
                yield f"{left} {right}", first @ second


def _with_transpose(name: str, a: Array) -> list[tuple[str, Array]]:
    return [(name, a), (f"{name}ᵀ", a.swapaxes(-1, -2))]


def _broadcast(a: Array, b: Array) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return None


# ---------------------------------------------------------------------------------------------------------
# All patterns

# ordered from the most specific to the most general pattern: the first one that matches gives the diagnosis
SINGLE = (nothing, factor)
WHOLE = (
    other_tensor,
    transposed,
    opposite,
    residual,
    factor_array,
    formula,
    gate,
    along_axis,
    along_array,
    two_terms,
    factor_by_row,
    repeated_rows,
    one_a_row,
    on_a_diagonal,
    other_direction,
    shifted,
    reordered_along,
    reordered,
    another_array,
    some_entries,
    only_a_factor,
    every_row_alike,
)
VALUES = (
    factor,
    transposed,
    opposite,
    on_a_diagonal,
    other_direction,
    shifted,
    reordered_along,
    reordered,
)
UNKNOWN = later("no known pattern matches: compare the code with the derivation")


def describe(context: DiagnosisContext) -> str:
    """Return the sentence of the first pattern that matches a whole tensor.

    The patterns of terms and paths of a backward pass apply to gradients only.
    """
    patterns = (*SINGLE, *WHOLE) if context.is_gradient else VALUES
    return next((clue for find in patterns if (clue := find(context))), phrase(UNKNOWN, GRADER))
