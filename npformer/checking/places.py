"""Patterns of positions: the correct numbers are at other positions, or only some entries are wrong."""

from itertools import combinations

import numpy as np

from npformer.backend import Array
from npformer.checking.diagnosis_context import DiagnosisContext


def other_tensor(context: DiagnosisContext) -> str:
    """Recognize the gradient of another tensor: backward returned them in another order."""
    for name, right in context.others.items():
        if right.shape == context.found.shape and right.any() and context.same(right, context.found):
            return f"it is the same as {name}: are the two exchanged, or is a factor missing?"
    return ""


def transposed(context: DiagnosisContext) -> str:
    """Recognize two swapped axes of the same length."""
    shape = context.right.shape
    for a, b in combinations(range(context.right.ndim), 2):
        if shape[a] == shape[b] and context.same(np.swapaxes(context.right, a, b), context.found):
            where = "" if context.right.ndim == 2 else f": axes {a} and {b} are swapped"
            return f"it is transposed{where}"
    return ""


def opposite(context: DiagnosisContext) -> str:
    """Recognize a mask in which True and False, or 1 and 0, are exchanged."""
    if set(np.unique(context.right)) == {0, 1} and np.array_equal(context.found, 1 - context.right):
        return "every entry is the opposite of the correct one: True must mean that the query may attend"
    return ""


def shifted(context: DiagnosisContext) -> str:
    """Recognize entries that are shifted by one position along an axis."""
    for axis in range(context.right.ndim):
        if context.right.shape[axis] < 4:
            continue
        right, found = np.moveaxis(context.right, axis, 0), np.moveaxis(context.found, axis, 0)
        for expected, shifted_by_one, text in (
            (right[:-1], found[1:], "late"),
            (right[1:], found[:-1], "early"),
        ):
            if np.ptp(expected) > 0 and context.same(expected, shifted_by_one):
                return f"it is shifted: along axis {axis} every entry is one position too {text}"
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
            return f"along axis {axis} it contains the correct numbers in the wrong order"
    return ""


def reordered(context: DiagnosisContext) -> str:
    """Recognize the correct numbers in another order."""
    if len(np.unique(context.right)) > 3 and context.same(
        np.sort(context.right, None), np.sort(context.found, None)
    ):
        return (
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
    where = "the diagonal" if offset[0] == 0 else f"the diagonal {offset[0]:+d}"
    return f"the wrong entries are all on {where} of the last two axes: a limit is off by one (< or <=?)"


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
            return (
                f"only rows whose index occurs several times in {name} are wrong: the gradients of all uses "
                "must be added, and one overwrote the others"
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
            return (
                f"only the entries at the indices {name} are wrong, one in each row: check what is subtracted"
            )
    return ""


def some_entries(context: DiagnosisContext) -> str:
    """Recognize that only some entries are wrong, as after a wrong mask or a missing position."""
    right, found, wrong = context.right, context.found, context.wrong
    if wrong.all() or not wrong.any():
        return ""
    share = f"{wrong.sum()} of {wrong.size} entries are wrong{_line(wrong)}"
    if not right[wrong].any():
        return f"{share}, and they should be 0: masked, dropped and padded positions get no gradient"
    if not found[wrong].any():
        return f"{share}: they are 0 and should not be, so backward leaves out a path of the forward pass"
    if right[wrong].all():
        c = found[wrong] / right[wrong]
        if np.ptp(c) <= context.rtol * np.abs(c).max():
            return f"{share}, by the factor {c[0]:.4g} (is a repeated index or a shared row counted wrongly?)"
    return f"{share}, and the others are correct: one position, row or branch is treated incorrectly"


def _line(wrong: Array) -> str:
    """Return the index that all wrong entries share along an axis, as words, or ""."""
    index = np.nonzero(wrong)
    for axis in range(wrong.ndim):
        if len(np.unique(index[axis])) == 1 and wrong.shape[axis] > 2:
            return f", all at index {index[axis][0]} of axis {axis}"
    return ""


def every_row_alike(context: DiagnosisContext) -> str:
    """Recognize a result that is constant along an axis and should not be."""
    for axis in range(context.right.ndim):
        if context.right.shape[axis] < 2 or np.ptp(context.found, axis=axis).any():
            continue
        if np.ptp(context.right, axis=axis).any():
            return (
                f"all entries along axis {axis} are equal: is it a sum over an axis that must not be summed?"
            )
    return ""
