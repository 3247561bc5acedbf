"""Explain wrong results: find a mistake in the plain solution that gives the same numbers, or a repair.

First come the mistakes with names: those that are special to the exercise, and those that many solutions
share. If the solution with a mistake gives the numbers of the learner's functions, the message names it.
Otherwise the repair changes the learner's own code (see repair.py). At last two mistakes with names are made
at once. The message never shows the correct line.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, combinations, product
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from npformer.language import say
from npformer.learn.exercises.agreement import LearnersResults
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.own_lines import own_line
from npformer.learn.exercises.repair import repair
from npformer.learn.tasks.verdict import observed_error
from npformer.mistakes.budget import Budget, limited_memory
from npformer.mistakes.mutants import with_mistakes
from npformer.mistakes.tables import Mistake

# limits in processor time: the result does not depend on other processes
SECONDS = 6.0  # of the search among single mistakes: the longest search takes half of it
SECONDS_OF_PAIRS = 1.5

LARGEST = 1e30  # larger numbers of the learner's code are not tried
MOST_NUMBERS = 20


def explain(
    exercise: Exercise, functions: dict[str, Any], observations: Sequence[Any], file: str = ""
) -> str:
    """Return a sentence about the mistake in the learner's functions, or "".

    A change that gives only the first wrong result is not named: it is often not the mistake that the learner
    made.

    Args:
        exercise: The exercise.
        functions: The learner's functions by name.
        observations: The observations of the trials.
        file: The learner's file. The sentence names a line of it.
    """
    found = LearnersResults(exercise, SimpleNamespace(**exercise.solution), observations)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        first = found.first_wrong()
        if first is None:
            return repair(exercise, functions, file) if observed_error(observations[-1]) else ""
        # a change that gives NaN everywhere, such as the root of a negative number, explains no NaN
        mistakes = exercise.mistakes if found.has_wrong_numbers(first) else exercise.special_mistakes
        numbers = _numbers(functions.values()) - _numbers(exercise.plain.values())
        mistakes = [
            one for mistake in mistakes for one in mistake.with_numbers(sorted(numbers)[:MOST_NUMBERS])
        ]
        single = _timed(([mistake] for mistake in mistakes), SECONDS)
        pairs = _timed(_pairs(mistakes), SECONDS_OF_PAIRS)
        return (
            _first_that_agrees(exercise, functions, found, first, single, file)
            or repair(exercise, functions, file)
            or _first_that_agrees(exercise, functions, found, first, pairs, file)
        )


def _first_that_agrees(
    exercise: Exercise,
    functions: dict[str, Any],
    found: LearnersResults,
    first: int,
    changes: Iterator[list[Mistake]],
    file: str,
) -> str:
    """Return the names of the first mistakes with which the solution gives the learner's results, or ""."""
    with limited_memory():
        for mistakes in changes:
            with suppress(SyntaxError, ValueError):  # two mistakes may change the same line
                changed = with_mistakes(exercise.plain, mistakes)
                if found.agree(SimpleNamespace(**changed), first):
                    says = say("; and ").join(mistake.says for mistake in mistakes)
                    says = _with_meanings(says, exercise, file)
                    return says + own_line(exercise, first, functions, changed, file)
    return ""


def _with_meanings(says: str, exercise: Exercise, file: str) -> str:
    """Return a sentence that says what a gradient is whose name the learner's file does not use."""
    if not Path(file).is_file():
        return says
    used, of_solution = (
        set(re.findall(r"\w+", text))
        for text in (Path(file).read_text(encoding="utf-8", errors="replace"), exercise.code)
    )
    for name in sorted(set(re.findall(r"\bd\w+", says)) & of_solution - used):
        if name[1:] in of_solution:
            says += say(" ({name} is the gradient of {array})", name=name, array=name[1:])
    return says


def _numbers(parts: Iterable[Any]) -> set[float]:
    """Return the numbers in functions and code, and those among other things."""
    found: set[float] = set()
    for part in parts:
        match part:
            case FunctionType():
                found |= _numbers([part.__code__])
            case CodeType():
                found |= _numbers(part.co_consts)
            case tuple():
                found |= _numbers(part)
            case int() | float() if not isinstance(part, bool) and abs(part) < LARGEST:
                found.add(part)
    return found


def _pairs(mistakes: Sequence[Mistake]) -> Iterator[list[Mistake]]:
    """Yield the pairs of mistakes with names: first those that are special to the exercise."""
    special = [mistake for mistake in mistakes if not mistake.is_shared]
    shared = mistakes[len(special) :]
    pairs = chain(combinations(special, 2), product(special, shared), combinations(shared, 2))
    yield from map(list, pairs)


def _timed(changes: Iterator[list[Mistake]], seconds: float) -> Iterator[list[Mistake]]:
    """Yield the changes until the time of the search is over."""
    limit = Budget(seconds)
    for change in changes:
        yield change
        if limit.is_over():
            return
