"""Clues of terms: what the result lacks, or has too much, is a term that is known."""

import numpy as np


def residual(scene):
    """The difference is dy itself: the way round a sublayer."""
    if np.shape(scene.dy) != scene.right.shape or not scene.right.ndim:
        return ""
    if scene.same(scene.right - scene.dy, scene.found):
        return "dy itself is missing from it: the residual's way round was left out"
    if scene.same(scene.right + scene.dy, scene.found):
        return "it holds dy once too often: the residual's way round was added twice"
    return ""


def along_axis(scene):
    """The difference is the same all along an axis: a mean, or a sum, that is missing there."""
    for axis in reversed(range(scene.right.ndim)):
        if scene.right.shape[axis] < 2:
            continue
        mean = scene.difference.mean(axis, keepdims=True)
        if mean.any() and scene.same(scene.difference, np.broadcast_to(mean, scene.right.shape)):
            return (
                f"it is off by the same amount all along axis {axis}: the term that passes through the "
                "mean or the sum over that axis is missing"
            )
    return ""


def along_array(scene):
    """The difference is, row by row, a multiple of an array that is known, such as softmax's output."""
    for name, array in _candidates(scene):
        for axis in reversed(range(scene.right.ndim)):
            if scene.right.shape[axis] < 2:
                continue
            c = _coefficient(scene.difference, array, axis)
            if scene.same(scene.difference, c * array):
                through = "variance" if _is_normalized(array, axis) else "sum"
                return (
                    f"it is off by a multiple of {name} all along axis {axis}: the term that passes through "
                    f"the {through} over that axis {_what_of_it(scene, array, axis, c)}"
                )
    return ""


def two_terms(scene):
    """The difference is, row by row, a number plus a multiple of a normalized array: layer norm."""
    axis = scene.right.ndim - 1
    for name, array in scene.alike():
        if axis < 0 or array.shape[axis] < 4 or not _is_normalized(array, axis):
            continue
        rest = scene.difference - scene.difference.mean(axis, keepdims=True)
        if scene.same(rest, _coefficient(rest, array, axis) * array):
            return (
                f"all along axis {axis} it is off by a number and a multiple of {name}: the terms that pass "
                "through the mean and through the variance are missing"
            )
    return ""


def _candidates(scene):
    """The known arrays of the result's size, and exp of those that are logarithms."""
    for name, array in scene.alike():
        if _is_dy(scene, array):
            continue  # it would explain every entry that was handed on unchanged
        yield name, array
        if (array <= 0).all():
            yield f"exp({name})", np.exp(array)


def _is_dy(scene, array):
    return np.size(scene.dy) == array.size and scene.same(array, np.reshape(scene.dy, array.shape))


def _coefficient(difference, array, axis):
    """The c of each row for which c array comes nearest to the difference."""
    square = (array * array).sum(axis, keepdims=True)
    return (difference * array).sum(axis, keepdims=True) / np.where(square == 0, 1, square)


def _is_normalized(array, axis):
    """Whether its rows have mean 0 and nearly variance 1, as layer norm's have."""
    return bool(np.abs(array.mean(axis)).max() < 1e-9 and np.abs((array * array).mean(axis) - 1).max() < 0.05)


def _what_of_it(scene, array, axis, c):
    """What happened to the term: softmax subtracts array · sum(dy array), log-softmax array · sum(dy)."""
    if np.ndim(scene.dy) and np.size(scene.dy) == scene.right.size:
        dy = scene.dy.reshape(scene.right.shape)
        for term in ((dy * array).sum(axis, keepdims=True), dy.sum(axis, keepdims=True)):
            for times, text in ((1, "is missing"), (2, "has the wrong sign"), (-1, "is there twice")):
                if scene.same(c, times * term):
                    return text
            if scene.same(c - term, np.broadcast_to((c - term).mean(), c.shape)):
                return "is one number for all rows: sum row by row, over that axis alone"
    return "is missing or wrong"


def another_array(scene):
    """It is an array that was given, or kept."""
    for name, array in scene.alike():
        if not _is_dy(scene, array) and scene.same(scene.found, array):
            return f"it is {name} itself, and not its gradient: dy does not come in"
    return ""


def only_a_factor(scene):
    """found = dy, or dy times one known array: the chain rule stopped half-way."""
    if np.size(scene.dy) != scene.right.size or not np.ndim(scene.dy):
        return ""
    dy = np.reshape(scene.dy, scene.right.shape)
    if scene.same(scene.found, dy):
        return "it is dy itself: the derivative of this step was left out"
    for name, array in scene.alike():
        if scene.same(scene.found, dy * array):
            return f"it is dy · {name} and nothing more: another term of the derivative is missing"
    return ""
