"""One result beside the right one: raises Fault at the first thing that differs."""

import numpy as np

from npformer.backend import is_array
from npformer.exercises.fault import Fault
from npformer.exercises.picture import first, picture_of, slice_of
from npformer.gradcheck.diagnosis import UNKNOWN, describe
from npformer.gradcheck.scene import Scene
from npformer.gradcheck.shapes import describe_shape

TOLERANCE = 1e-9


def compare(name, right, found, *, who, dy=None, arrays=None, others=None, numbers=(), mutant=None):
    """Raise Fault unless found is what it should be.

    who is the learner's function. mutant() names the change of the package's own function that gives this
    result, or returns "". The rest is as in Scene.
    """
    check_kind(name, right, found, who)
    if isinstance(right, (list, tuple, str)) or right is None:
        if found != right:
            raise Fault(
                f"{name} is {_short(found)} and should be {_short(right)}", (mutant() if mutant else "",)
            )
        return
    right_array, found_array = np.asarray(right), np.asarray(found)
    if right_array.shape != found_array.shape:
        raise Fault(f"{name} has the wrong shape: {describe_shape(right_array, found_array)}")
    right, found = right_array.astype(np.float64), found_array.astype(np.float64)
    wrong = ~np.isclose(
        found, right, rtol=0, atol=TOLERANCE * max(1e-300, np.abs(_finite(right)).max(initial=0))
    )
    wrong &= found != right  # infinities that agree
    if not wrong.any():
        check_dtype(name, right_array, found_array)
        return
    raise Fault(
        _where(name, right_array, found_array, first(wrong), wrong),
        _clues(right, found, dy, arrays or {}, others or {}, numbers, mutant),
        picture_of(name, right, found, wrong),
        slice_of(right, found, wrong),
    )


def check_kind(name, right, found, who):
    """The kind of thing: an array where an array is due, and so on."""
    if found is None and right is not None:
        raise Fault(f"{who} returns nothing (None) where {name} is due: end it with a return")
    if is_array(right) and not isinstance(found, (np.ndarray, np.generic)):
        raise Fault(f"{name} is of type {type(found).__name__} and must be an array")
    if isinstance(right, (list, tuple)) and type(found) is not type(right):
        raise Fault(f"{name} is of type {type(found).__name__} and must be a {type(right).__name__}")
    is_number = isinstance(found, (int, float, np.number, np.bool_)) or is_array(found)
    if isinstance(right, (int, float)) and not is_number:
        raise Fault(f"{name} is of type {type(found).__name__} and must be a number")
    if is_array(found) and found.dtype.kind not in "bif":
        raise Fault(f"{name} has dtype {found.dtype}: it must hold {_kind(np.asarray(right))}")


def check_dtype(name, right, found):
    """Numbers that are right, in another precision or kind."""
    if right.ndim and (
        right.dtype.kind != found.dtype.kind or (right.dtype.kind == "f" and right.dtype != found.dtype)
    ):
        raise Fault(
            f"{name} has the right numbers and the wrong dtype: {found.dtype}, and should be {right.dtype}",
            ("dtype wrong: keep that of the arrays you are given (np.zeros with a dtype, no np.sqrt(64))",),
        )


def _kind(right):
    return {"b": "True and False", "i": "whole numbers", "f": "real numbers"}.get(right.dtype.kind, "numbers")


def _where(name, right, found, entry, wrong):
    """The first wrong entry in numbers."""
    if right.ndim == 0:
        return f"{name} is {_number(found[()])} and should be {_number(right[()])}"
    at = f"{name}[{', '.join(map(str, entry))}]"
    share = f"{int(wrong.sum())} of {wrong.size} entries are wrong"
    return f"{share}, first {at}: it is {_number(found[entry])} and should be {_number(right[entry])}"


def _number(x):
    return str(x) if x.dtype.kind in "bi" else f"{float(x):.6g}"


def _clues(right, found, dy, arrays, others, numbers, mutant):
    """What it looks like: a clue from the numbers, and the change of the right code that gives the same."""
    if not np.isfinite(found[np.isfinite(right)]).all():
        clue = "it holds NaN or infinity: a division by 0, a log of 0, or inf - inf?"
    elif not np.isfinite(right).all():
        clue = UNKNOWN
    else:
        clue = describe(Scene(right, found, dy, arrays, others, [*numbers]))
    change = mutant() if mutant else ""
    return (change,) if clue == UNKNOWN and change else (clue, change)


def _finite(x):
    return x[np.isfinite(x)]


def _short(thing):
    text = repr(thing)
    return text if len(text) < 60 else text[:57] + "..."
