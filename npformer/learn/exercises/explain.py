"""Explain a wrong result: find a mistake in the correct code that gives the same wrong numbers.

First come the mistakes with names (see special/). Then the search makes one common mistake at a time in the
plain solution: it leaves out a term, a factor or a sign, skips a call, or sums over another axis. If the
changed function gives the same numbers as the learner's function, the message names this mistake. The message
never shows the correct line.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from types import SimpleNamespace
from typing import TypeAlias

from npformer.learn.exercises.own_lines import own_line
from npformer.mistakes.budget import Budget, limited_memory
from npformer.mistakes.mutants import (
    STEP,
    Changes,
    Function,
    changed_source,
    likely,
    mix_ups,
    mutants,
    source_of,
    with_mistakes,
)
from npformer.mistakes.tables import Mistake

Changed: TypeAlias = tuple[str, dict[str, Function]]  # a mistake in words, and the solution with it

SECONDS = 1.5  # the limit of the search, in processor time: the result does not depend on other processes


def explain(
    solution: dict[str, Function],
    mistakes: Sequence[Mistake],
    agrees: Callable[[SimpleNamespace], bool],
    *,
    search: str = "likely",
    repair: str = "",
    file: str = "",
) -> str:
    """Return a sentence about the change of the solution that gives all of the learner's results, or "".

    A mistake with a name is preferred to a repair, and a repair to another change. A change that gives only
    the first wrong result is not named: it is often not the mistake that the learner made.

    Args:
        solution: The plain solution: functions by name.
        mistakes: The mistakes with names.
        agrees: Returns whether changed functions give the learner's results in all trials.
        search: "named" tries the mistakes with names, and "likely" also other common changes and pairs of
            named mistakes.
        repair: What is wrong in the learner's own code, or "" if this is unknown.
        file: The learner's file. The sentence names the line in which it computes the same variable.
    """
    with limited_memory():
        for text, functions in _changes(solution, mistakes, search, bool(repair)):
            if agrees(SimpleNamespace(**functions)):
                where = _own_lines(solution, file, functions)
                return (text.partition(STEP)[0] if where else text) + where
    return repair


def _changes(
    solution: dict[str, Function], mistakes: Sequence[Mistake], search: str, only_named: bool
) -> Iterator[Changed]:
    """Yield the changes that `explain` tries."""
    yield from ((one.says, with_mistakes(solution, [one])) for one in mistakes)
    if search == "likely" and not only_named:
        yield from _timed(_unnamed(solution, (likely, mix_ups)))
        yield from _timed(_pairs(solution, mistakes))


def _own_lines(solution: dict[str, Function], file: str, changed: dict[str, Function]) -> str:
    """Return a phrase with the line of the learner's file that belongs to the change, or ""."""
    return "".join(
        own_line(
            ast.unparse(ast.parse(source_of(function))), changed_source(changed[name]), file, list(solution)
        )
        for name, function in solution.items()
        if changed[name] is not function
    )


def _unnamed(solution: dict[str, Function], kinds: Iterable[Changes]) -> Iterator[Changed]:
    """Yield the changes that mutants makes, in words, and the changed solutions."""
    for changes in kinds:
        for name, function in solution.items():
            for text, mutant in mutants(function, changes):
                yield f"the correct function gives the same numbers {text}", solution | {name: mutant}


def _pairs(solution: dict[str, Function], mistakes: Sequence[Mistake]) -> Iterator[Changed]:
    """Yield the pairs of mistakes with names: first those that are special to the exercise."""
    pairs = combinations(mistakes, 2)
    for one, other in sorted(pairs, key=lambda pair: pair[0].is_shared + pair[1].is_shared):
        with suppress(SyntaxError):  # the two may change the same line
            yield f"{one.says}; and {other.says}", with_mistakes(solution, [one, other])


def _timed(changes: Iterable[Changed]) -> Iterator[Changed]:
    """Yield the changes until the time of the search is over."""
    limit = Budget(SECONDS)
    for change in changes:
        yield change
        if limit.is_over():
            return
