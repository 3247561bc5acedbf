"""Registration of plain solutions and of the mistakes that learners make in them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from npformer.mistakes.tables import rows_of

Function = Callable[..., Any]


@dataclass(frozen=True)
class Mistake:
    """A mistake that learners make, as a change of a plain solution.

    Args:
        says: A sentence that names the mistake with the names of the stub. It does not show the correct line.
        changes: Pairs of a text in the source of the plain solution, and the text in its place.
        is_shared: True if many solutions share the mistake.
    """

    says: str
    changes: tuple[tuple[str, str], ...]
    is_shared: bool = False


PLAIN: dict[str, dict[str, Function]] = {}  # the plain solutions by exercise and name
MISTAKES: dict[str, tuple[Mistake, ...]] = {}  # those that are special to an exercise


def plain(exercise: str) -> Callable[[Function], Function]:
    """Register a function as the plain solution of an exercise.

    Args:
        exercise: The name of the exercise.
    """

    def register(function: Function) -> Function:
        PLAIN.setdefault(exercise, {})[function.__name__] = function
        return function

    return register


def add_mistakes(text: str) -> None:
    """Register the mistakes that are special to exercises.

    Mistakes that many solutions share are concepts (see npformer.mistakes.concepts): no table repeats them.

    Args:
        text: Tables (see npformer.mistakes.tables). Above each stands "=== " and the names of its exercises.
            If two mistakes give the same results, the first one is named.
    """
    for section in text.split("=== ")[1:]:
        names, _, table = section.partition("\n")
        for name in names.split():
            MISTAKES[name] = (*MISTAKES.get(name, ()), *(Mistake(*row) for row in rows_of(table)))
