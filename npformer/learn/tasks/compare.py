"""Compare a learner's result with the correct one, and show where they differ as a grid of characters."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking.shapes import describe_shape
from npformer.language import GRADER, later, phrase, say
from npformer.learn.tasks.verdict import Fault
from npformer.mistakes.patterns import UNKNOWN, DiagnosisContext, describe, has_few_digits

TOLERANCE = 1e-9  # relative to the largest entry of the correct result

ROWS, COLUMNS = 12, 40  # of the largest grid that is shown
MARKS = later(
    "· correct   + too large   - too small   0 is 0, should not be 0   x should be 0   ! NaN or infinite"
)


def compare(
    name: str,
    right: Any,
    found: Any,
    *,
    who: str,
    dy: Any = None,
    arrays: dict[str, Array] | None = None,
    others: dict[str, Array] | None = None,
    numbers: Sequence[tuple[float, str]] = (),
    floor: float = 0.0,
    clue: str = "",
    where: Callable[[], str] = str,
) -> None:
    """Check that a result of the learner's code is correct, up to a relative error of `TOLERANCE`.

    Args:
        name: The name of the result, for messages.
        right: The correct result: an array, a number, a string, a list, a tuple or None.
        found: The result of the learner's code.
        who: The name of the learner's function.
        dy: The gradient of the output, if `found` is a gradient. The diagnosis of a wrong result uses `dy`,
            `arrays`, `others` and `numbers`.
        arrays: Other arrays that the result may have been confused with, by name.
        others: The other gradients, by name.
        numbers: Pairs (number, name) of numbers that may be a wrong factor.
        floor: The smallest number that errors are relative to, for a result that is 0 but for rounding
            errors.
        clue: The mistake in the learner's code, or "" if it is unknown.
        where: Returns a sentence about the results that are wrong, or "".

    Raises:
        Fault: If the result is wrong. The fault has the first wrong entry, likely causes and a picture.
    """
    _check_type(name, right, found, who)
    if isinstance(right, (list, tuple, str)) or right is None:
        if is_array(found) or found != right:
            raise Fault(
                say(
                    "{name} is {found} and should be {due}", name=name, found=_short(found), due=_short(right)
                ),
                (clue or where(),),
            )
        return
    right_array, found_array = np.asarray(right), np.asarray(found)
    _check_shape(name, right_array, found_array, dy, clue)
    right, found = right_array.astype(np.float64), found_array.astype(np.float64)
    scale = max(1e-300, floor, np.abs(right[np.isfinite(right)]).max(initial=0))
    wrong = ~np.isclose(found, right, rtol=0, atol=tolerance_of(right_array) * scale)
    wrong &= found != right  # equal infinities are not wrong
    if not wrong.any():
        _check_dtype(name, right_array, found_array)
        return
    context = DiagnosisContext(
        right, found, dy, arrays or {}, others or {}, [*numbers], is_gradient=dy is not None
    )
    raise Fault(
        _describe_first(name, right_array, found_array, wrong),
        (clue or _cause(context) or where() or phrase(UNKNOWN, GRADER),),
        picture_of(name, right, found, wrong),
        difference_of(right, found, wrong),
    )


def tolerance_of(right: Array) -> float:
    """Return the relative tolerance for a result: sums in another order differ more in float32."""
    return max(TOLERANCE, 16 * float(np.finfo(right.dtype).eps)) if right.dtype.kind == "f" else TOLERANCE


def _check_type(name: str, right: Any, found: Any, who: str) -> None:
    """Check that the result has the type of the correct result: an array, a number, a string, and so on."""
    if found is None and right is not None:
        raise Fault(
            say("{who} returns nothing (None) instead of {name}: end it with a return", who=who, name=name)
        )
    if is_array(right) and not isinstance(found, (np.ndarray, np.generic)):
        raise Fault(
            say("{name} is of type {type} and must be an array", name=name, type=type(found).__name__)
        )
    if isinstance(right, (list, tuple)) and type(found) is not type(right):
        raise Fault(
            say(
                "{name} is of type {type} and must be a {due}",
                name=name,
                type=type(found).__name__,
                due=type(right).__name__,
            )
        )
    is_number = isinstance(found, (int, float, np.number, np.bool_)) or is_array(found)
    if isinstance(right, (list, tuple)):
        _check_lists(name, right, found)
    if isinstance(right, (int, float)) and not is_number:
        raise Fault(
            say("{name} is of type {type} and must be a number", name=name, type=type(found).__name__)
        )
    if is_array(found) and found.dtype.kind not in "bif":
        kinds = {"b": say("True and False"), "i": say("whole numbers"), "f": say("real numbers")}
        due = kinds.get(np.asarray(right).dtype.kind, say("numbers"))
        raise Fault(
            say("{name} has dtype {dtype}: it must contain {due}", name=name, dtype=found.dtype, due=due)
        )


def _check_shape(name: str, right: Array, found: Array, dy: Any, clue: str) -> None:
    """Check that an array has the shape of the correct result, and is True or False if that is."""
    if right.shape != found.shape:
        why = describe_shape(right, found, dy=dy)
        raise Fault(say("{name} has the wrong shape: {why}", name=name, why=why), (clue,))
    if right.dtype.kind == "b" and not np.isin(found, (0, 1)).all():
        raise Fault(
            say(
                "{name} holds numbers other than 0 and 1 ({dtype}): it must be True or False",
                name=name,
                dtype=found.dtype,
            )
        )


def _check_lists(name: str, right: Any, found: Any) -> None:
    """Check that no element of a list is an array: the comparison of two arrays is not True or False."""
    for index, (due, element) in enumerate(zip(right, found, strict=False)):
        if is_array(element) and np.ndim(element):
            raise Fault(
                say(
                    "{name}[{index}] is an array and must be of type {type}",
                    name=name,
                    index=index,
                    type=type(due).__name__,
                )
            )
        if isinstance(due, (list, tuple)) and isinstance(element, (list, tuple)):
            _check_lists(f"{name}[{index}]", due, element)


def _check_dtype(name: str, right: Array, found: Array) -> None:
    """Check the dtype of a result whose numbers are correct."""
    same_kind = right.dtype.kind == found.dtype.kind
    if right.ndim and (not same_kind or (right.dtype.kind == "f" and right.dtype != found.dtype)):
        clue = say(
            "the result must have the dtype of the arguments: give np.zeros a dtype, and use "
            "math.sqrt(64) and not np.sqrt(64)"
        )
        if right.dtype.kind != "f":
            due = right.dtype
            clue = say("give np.zeros, np.ones and np.full this dtype, or use .astype({due})", due=due)
        raise Fault(
            say(
                "the numbers of {name} are correct, but its dtype is {dtype} and should be {due}",
                name=name,
                dtype=found.dtype,
                due=right.dtype,
            ),
            (clue,),
        )


def _describe_first(name: str, right: Array, found: Array, wrong: Array) -> str:
    """Return a sentence with the first wrong entry and the number of wrong entries."""
    if right.ndim == 0:
        return f"{name} {_is_and_should_be(found[()], right[()])}"
    entry = first_entry(wrong)
    at = f"{name}[{', '.join(map(str, entry))}]"
    share = say("{count} of {size} entries are wrong", count=int(wrong.sum()), size=wrong.size)
    return say(
        "{share}, first {at}: it {numbers}",
        share=share,
        at=at,
        numbers=_is_and_should_be(found[entry], right[entry]),
    )


def _is_and_should_be(found: Any, right: Any) -> str:
    """Return both numbers, with so many digits that they differ."""
    for digits in (6, 9, 17):
        is_, due = (str(x) if x.dtype.kind in "bi" else f"{float(x):.{digits}g}" for x in (found, right))
        if is_ != due:
            break
    return say("is {found} and should be {due}", found=is_, due=due)


def _cause(context: DiagnosisContext) -> str:
    """Return a cause that the numbers suggest, or ""."""
    if not np.isfinite(context.found[np.isfinite(context.right)]).all():
        return say("it contains NaN or infinity: is there a division by 0, a logarithm of 0, or inf - inf?")
    if has_few_digits(context.right, context.found):
        return say(
            "it is correct to about seven digits: a part of it was computed in float32, a small number was "
            "added, or a small term is missing"
        )
    clue = describe(context) if np.isfinite(context.right).all() else ""
    return "" if clue == phrase(UNKNOWN, GRADER) else clue


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


# ---------------------------------------------------------------------------------------------------------
# The grid of characters


def picture_of(name: str, right: Array, found: Array, wrong: Array) -> str:
    """Return a grid of marks: one for each entry of the matrix that holds the first wrong entry.

    Args:
        name: The name of the array.
        right: The correct entries, of any shape.
        found: The learner's entries, of the same shape.
        wrong: True where an entry is wrong, of the same shape.
    """
    if right.ndim == 0 or right.size == 1:
        return ""
    matrix = _matrix_of_first(wrong)
    marks = np.atleast_2d(_marks(right, found, wrong)[matrix])
    rows, columns = marks.shape
    lines = ["  " + " ".join(line[:COLUMNS]) + (" …" if columns > COLUMNS else "") for line in marks[:ROWS]]
    if rows > ROWS:
        lines.append(say("  … and {value} more rows", value=rows - ROWS))
    at = f"[{', '.join(map(str, matrix))}]" if matrix else ""
    axes = (
        say("rows: axis {value}, columns: axis {column}", value=right.ndim - 2, column=right.ndim - 1)
        if right.ndim > 1
        else say("axis 0")
    )
    others = int(wrong.reshape(-1, rows * columns).any(1).sum()) - 1 if right.ndim > 2 else 0
    more = say(", and {others} more such matrices differ", others=others) if others else ""
    legend = "   ".join(
        part for part in phrase(MARKS, GRADER).split("   ") if part[0] in set("".join(marks.reshape(-1)))
    )
    head = say("{name} ({axes}){more}:", name=f"{name}{at}", axes=axes, more=more)
    return "\n".join([head, *lines, f"  {legend}"])


def difference_of(right: Array, found: Array, wrong: Array) -> list[list[float]] | None:
    """Return found - right for the same matrix as lists, or None for a number or entries that are not finite.

    Args:
        right: The correct entries, of any shape.
        found: The learner's entries, of the same shape.
        wrong: True where an entry is wrong, of the same shape.
    """
    if right.ndim == 0 or right.size == 1 or not np.isfinite(found).all():
        return None
    return np.atleast_2d((found - right)[_matrix_of_first(wrong)]).tolist()


def first_entry(wrong: Array) -> tuple[int, ...]:
    """Return the index of the first entry that is True."""
    return tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))


def _matrix_of_first(wrong: Array) -> tuple[int, ...]:
    """Return the index of the matrix (the last two axes) that holds the first wrong entry."""
    return first_entry(wrong)[:-2] if wrong.ndim > 1 else ()


def _marks(right: Array, found: Array, wrong: Array) -> Array:
    marks = np.where(found > right, "+", "-")
    marks = np.where(right == 0, "x", marks)
    marks = np.where((found == 0) & (right != 0), "0", marks)
    marks = np.where(~np.isfinite(found), "!", marks)
    return np.where(wrong, marks, "·")
