"""Registration of plain solutions and of the mistakes that learners make in them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Mistake:
    """A mistake that learners make, as a change of a plain solution.

    Args:
        says: A sentence that names the mistake with the names of the stub. It does not show the correct line.
        changes: Pairs of a text in the source of the plain solution, and the text in its place.
    """

    says: str
    changes: tuple[tuple[str, str], ...]


def mistake(says: str, *texts: str) -> Mistake:
    """Return a mistake with these changes, given as: old text, new text, old text, new text, and so on."""
    return Mistake(says, tuple(zip(texts[::2], texts[1::2], strict=True)))


PLAIN: dict[str, dict[str, Function]] = {}  # the plain solutions by exercise and name
MISTAKES: dict[str, tuple[Mistake, ...]] = {}  # by exercise


def plain(exercise: str, *mistakes: Mistake) -> Callable[[Function], Function]:
    """Register a function as the plain solution of an exercise, with the mistakes that learners make in it.

    Args:
        exercise: The name of the exercise.
        mistakes: The mistakes. If two of them give the same results, the first one is named.
    """

    def register(function: Function) -> Function:
        PLAIN.setdefault(exercise, {})[function.__name__] = function
        MISTAKES[exercise] = (*MISTAKES.get(exercise, ()), *mistakes)
        return function

    return register
