"""Clues of places: the right numbers stand elsewhere, or only some entries are wrong."""

from itertools import combinations

import numpy as np


def other_tensor(scene):
    """It is the gradient of another tensor: returned in another order."""
    for name, right in scene.others.items():
        if right.shape == scene.found.shape and right.any() and scene.same(right, scene.found):
            return f"it is the same as {name}: have the two changed places, or is a factor left out?"
    return ""


def transposed(scene):
    """Two axes of one length are swapped."""
    shape = scene.right.shape
    for a, b in combinations(range(scene.right.ndim), 2):
        if shape[a] == shape[b] and scene.same(np.swapaxes(scene.right, a, b), scene.found):
            where = "" if scene.right.ndim == 2 else f": axes {a} and {b} are swapped"
            return f"it is transposed{where}"
    return ""


def opposite(scene):
    """True and False, or 1 and 0, exchanged."""
    if set(np.unique(scene.right)) == {0, 1} and np.array_equal(scene.found, 1 - scene.right):
        return "it is the opposite throughout: True must mean may look"
    return ""


def shifted(scene):
    """Each entry stands one place further on."""
    for axis in range(scene.right.ndim):
        if scene.right.shape[axis] < 4:
            continue
        right, found = np.moveaxis(scene.right, axis, 0), np.moveaxis(scene.found, axis, 0)
        for there, here, text in ((right[:-1], found[1:], "late"), (right[1:], found[:-1], "early")):
            if np.ptp(there) > 0 and scene.same(there, here):
                return f"it is shifted: along axis {axis} every number comes one place too {text}"
    return ""


def reordered_along(scene):
    """The right numbers in another order along one axis."""
    for axis in range(scene.right.ndim):
        right, found = np.sort(scene.right, axis), np.sort(scene.found, axis)
        if np.ptp(scene.right, axis=axis).any() and len(np.unique(right)) > 3 and scene.same(right, found):
            return f"along axis {axis} it holds the right numbers in the wrong order"
    return ""


def reordered(scene):
    """The right numbers in other places."""
    if len(np.unique(scene.right)) > 3 and scene.same(np.sort(scene.right, None), np.sort(scene.found, None)):
        return (
            "it holds the right numbers in the wrong order: axes swapped, or a reshape where axes must be "
            "swapped first?"
        )
    return ""


def on_a_diagonal(scene):
    """The wrong entries are one diagonal: a mask's < in the place of <=."""
    wrong = scene.wrong
    if wrong.ndim < 2 or wrong.sum() < 2:
        return ""
    offset = np.unique(np.diff(np.nonzero(wrong)[-2:], axis=0))
    if len(offset) > 1 or wrong.shape[-1] < 3 or wrong.shape[-2] < 3:
        return ""
    where = "the diagonal" if offset[0] == 0 else f"the diagonal {offset[0]:+d}"
    return f"the wrong entries are all on {where} of the last two axes: a boundary is off by one (< or <=?)"


def repeated_rows(scene):
    """Only rows that were read several times are wrong: one of their gradients overwrote the others."""
    for name, ids in scene.arrays.items():
        rows = (
            np.flatnonzero(scene.wrong.reshape(len(scene.wrong), -1).any(1))
            if scene.right.ndim
            else np.zeros(0, int)
        )
        if ids.dtype.kind != "i" or not len(rows) or rows.max() > max(ids.max(), 0):
            continue
        counts = np.bincount(ids.reshape(-1)[ids.reshape(-1) >= 0], minlength=len(scene.right))
        if (counts[rows] > 1).all():
            return (
                f"only rows that {name} names several times are wrong: each time must be added, and one "
                "overwrote the other"
            )
    return ""


def one_a_row(scene):
    """In each row the entry that an array of ids names is wrong, and no other."""
    for name, ids in scene.arrays.items():
        if ids.dtype.kind != "i" or ids.size * scene.right.shape[-1] != scene.right.size:
            continue
        wrong = scene.wrong.reshape(-1, scene.right.shape[-1])
        rows, columns = np.nonzero(wrong)
        if len(rows) and len(rows) == len(set(rows)) and (ids.reshape(-1)[rows] == columns).all():
            return f"only the entries that {name} names are wrong, one a row: what is subtracted there?"
    return ""


def some_entries(scene):
    """Some entries are right and others not: a mask, or a position left out."""
    right, found, wrong = scene.right, scene.found, scene.wrong
    if wrong.all() or not wrong.any():
        return ""
    share = f"{wrong.sum()} of {wrong.size} entries are wrong{_line(wrong)}"
    if not right[wrong].any():
        return f"{share}, and they should be 0: masked, dropped or padded positions must pass nothing back"
    if not found[wrong].any():
        return f"{share}: they are 0 and should not be, so something that was used passed nothing back"
    if right[wrong].all():
        c = found[wrong] / right[wrong]
        if np.ptp(c) <= scene.loose * np.abs(c).max():
            return f"{share}, by the factor {c[0]:.4g} (a repeated index or a shared row counted wrongly?)"
    return f"{share}, the others right: one position, row or branch is treated wrongly"


def _line(wrong):
    """Where they stand, if that is one index of an axis."""
    index = np.nonzero(wrong)
    for axis in range(wrong.ndim):
        if len(np.unique(index[axis])) == 1 and wrong.shape[axis] > 2:
            return f", all at index {index[axis][0]} of axis {axis}"
    return ""


def every_row_alike(scene):
    """The result repeats itself along an axis, and should not."""
    for axis in range(scene.right.ndim):
        if scene.right.shape[axis] < 2 or np.ptp(scene.found, axis=axis).any():
            continue
        if np.ptp(scene.right, axis=axis).any():
            return f"it is the same all along axis {axis}: summed over an axis that must stay"
    return ""
