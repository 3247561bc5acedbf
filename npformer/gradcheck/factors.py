"""Clues of numbers: the result is the right one times a number, or nothing at all."""

import math

import numpy as np


def nothing(scene):
    """Zero where it should not be, or not where it should."""
    if not scene.found.any() and scene.right.any():
        return "it is 0 throughout: nothing reached this tensor (a branch left out, or a lost tie?)"
    if np.abs(scene.right).max(initial=0) <= scene.loose * np.abs(scene.found).max(initial=0):
        return "it should be 0 throughout: the output does not depend on this tensor"
    return ""


def factor(scene):
    """found = c right, with a c that has a name."""
    right, found = scene.right.reshape(-1), scene.found.reshape(-1)
    c = float(found @ right) / max(float(right @ right), np.finfo(float).tiny)
    if c == 0 or not scene.same(found, c * right):
        return ""
    if math.isclose(c, -1, rel_tol=scene.loose):
        return "the sign is wrong"
    for number, what in scene.numbers:
        for power, text in ((1, what), (-1, f"1/{what}"), (0.5, f"√{what}"), (-0.5, f"1/√{what}")):
            for sign, minus in ((1, ""), (-1, "-")):
                if math.isclose(c, sign * number**power, rel_tol=10 * scene.loose):
                    return f"it is {c:.4g} = {minus}{text} times the right one{_explain(power, number)}"
    return _ratio(scene, c) or f"it is {c:.6g} times the right one"


def _ratio(scene, c):
    """c = a / b of two counts of the same things: divided by one where the other was right."""
    counts = [(n, what) for n, what in scene.numbers if "(all " in what or " that are not " in what]
    for a, of_a in counts:
        for b, of_b in counts:
            if a != b and math.isclose(c, a / b, rel_tol=10 * scene.loose):
                return (
                    f"it is {c:.4g} = {a} / {b} times the right one, that is {of_a} over {of_b}: "
                    "divided by one count where the other is right?"
                )
    return ""


def _explain(power, number):
    if power == -1 and number > 2:
        return " (averaged where it should be summed?)"
    if power in (0.5, -0.5):
        return " (a scale of √d left out, or applied twice?)"
    return " (counted twice?)" if number == 2 and power == 1 else ""


def factor_array(scene):
    """found = right / A or right A, entry by entry, with an array that is known."""
    for name, array in _spread(scene):
        for missing, text in ((True, "is missing"), (False, "is there once too often")):
            if scene.same(
                *((scene.found * array, scene.right) if missing else (scene.found, scene.right * array))
            ):
                return f"the factor {name} {text}"
    return ""


def _spread(scene):
    """The arrays that can be multiplied into the result, and that are not one number throughout."""
    for name, array in scene.arrays.items():
        fits = array.ndim == scene.right.ndim and all(
            n in (1, m) for n, m in zip(array.shape, scene.right.shape, strict=True)
        )
        if array.dtype.kind == "f" and fits and array.size > 1 and np.ptp(array) > 0:
            yield name, array


def factor_by_row(scene):
    """found = c right with a c of its own for each row: a factor that differs from row to row."""
    for axis in reversed(range(scene.right.ndim)):
        if scene.right.shape[axis] < 2 or scene.right.ndim < 2:
            continue
        square = (scene.right * scene.right).sum(axis, keepdims=True)
        c = (scene.found * scene.right).sum(axis, keepdims=True) / np.where(square == 0, 1, square)
        if c.any() and scene.same(scene.found, c * scene.right):
            return (
                f"all along axis {axis} it is the right one times a number, another one for each row: "
                "a factor or a normalization that belongs to the row is missing"
            )
    return ""
