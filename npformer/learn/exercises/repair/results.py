"""The repair of the learner's code: edits after which all results of an exercise are right."""

import ast
from collections.abc import Iterable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from npformer.backend import is_array
from npformer.checking.repair.scope import scope_of
from npformer.checking.repair.search import Right, Search
from npformer.learn.exercises.agreement import equal, floor_of, results_of
from npformer.learn.exercises.exercise import Exercise, Gradients
from npformer.learn.exercises.inputs import with_kept_inputs
from npformer.learn.exercises.mutants import source_of
from npformer.learn.exercises.repair.own_code import editable_functions, is_stub, limited
from npformer.learn.exercises.time_limit import TimeLimit

SECONDS = 2.0  # the limit of the search, in processor time
MOST = 3  # edits that one message names


def repair(exercise: Exercise, functions: dict[str, Any], file: str) -> str:
    """Return a sentence about the edits of the learner's code that make the results right, or "".

    Args:
        exercise: The exercise.
        functions: The learner's functions by name.
        file: The learner's file.
    """
    own = {name: functions.get(name) for name in exercise.solution}
    try:
        editable = editable_functions(file, own)
    except LookupError:
        return ""
    if is_stub(editable, exercise.stub):
        return ""
    goal = RightResults(exercise, own, file)
    sources = "".join(source_of(function) for function in exercise.plain.values())
    plain = [node for node in ast.parse(sources).body if isinstance(node, ast.FunctionDef)]
    imported = [*_imported(functions)]
    scopes = [
        scope_of(
            function.definition,
            plain,
            imported=imported,
            has_real_results=goal.is_real,
            has_gradients=goal.has_gradients,
        )
        for function in editable
    ]
    return _sentence(goal, Search(goal, [*zip(editable, scopes, strict=True)], MOST))


def _imported(namespace: dict[str, Any]) -> Iterable[str]:
    """Yield the names of the functions that come from the package."""
    for name, thing in namespace.items():
        if isinstance(thing, FunctionType) and str(thing.__module__).startswith("npformer."):
            yield name


def _sentence(goal: "RightResults", search: Search) -> str:
    """Return what is wrong and which results are right after the edits, or "" if it is unknown."""
    if not search.made:
        return ""
    says = "; and ".join(map(str, search.made))
    change = "this change" if len(search.made) == 1 else "these changes"
    if search.is_successful:
        return f"{says} (with {change} all results are right)"
    is_likely = all(edit.is_likely for edit in search.made)
    if is_likely and goal.has_another_trial(search.right, search.before):
        return f"{says} (with {change} the first wrong results are right, and others are still wrong)"
    return ""


class RightResults:
    """The goal of right results in all trials of an exercise.

    Args:
        exercise: The exercise.
        functions: The learner's functions by name.
        file: The learner's file.
    """

    def __init__(self, exercise: Exercise, functions: dict[str, Any], file: str) -> None:
        package = SimpleNamespace(**exercise.solution)
        self._functions, self._file = with_kept_inputs(exercise, functions), file
        self._limit = TimeLimit(SECONDS)
        self._trials = exercise.trials
        self._due = [results_of(trial, package) for trial in self._trials]
        self._all = frozenset((index, name) for index, results in enumerate(self._due) for name in results)

    @property
    def is_real(self) -> bool:
        """True if a result is a real number or an array of real numbers."""
        results = (value for due in self._due for value in due.values())
        return any(
            value.dtype.kind == "f" if is_array(value) else isinstance(value, float) for value in results
        )

    @property
    def has_gradients(self) -> bool:
        """True if a trial is a gradient check."""
        return any(isinstance(trial, Gradients) for trial in self._trials)

    def is_reached(self, right: Right) -> bool:
        """Return whether all results are right."""
        return right == self._all

    def is_over(self) -> bool:
        """Return whether the time is over."""
        return self._limit.is_over()

    def has_another_trial(self, right: Right, before: Right) -> bool:
        """Return whether the first gradient check with a wrong result before has none now."""
        first = min(index for index, _ in self._all - before)
        is_check = isinstance(self._trials[first], Gradients)
        return is_check and all(index != first for index, _ in self._all - right)

    def right(self, before: Right | None) -> Right:
        """Return the results that are right: the numbers of their trials, and their names.

        Args:
            before: The results that are right without the last edit. The trials end, with no result, as soon
                as the first trial in which a result was wrong has no more right results than before.
        """
        found: set[tuple[int, str]] = set()
        order = [*range(len(self._trials))]
        if before is not None:
            first = min(index for index, _ in self._all - before)
            order = [first, *(index for index in order if index != first)]
        for index in order:
            in_trial = self._right_in(index)
            if before is not None:
                old = {name for number, name in before if number == index}
                if not in_trial >= old or (index == first and in_trial == old):
                    return frozenset()
            found |= {(index, name) for name in in_trial}
        return frozenset(found)

    def _right_in(self, index: int) -> set[str]:
        """Return the names of the results that are right in a trial. After an exception there are none."""
        trial, due = self._trials[index], self._due[index]
        try:
            with limited(self._file, self._limit):
                found = results_of(trial, self._functions)
        except Exception:  # a changed function may fail in any way
            return set()
        floor = floor_of(due) if isinstance(trial, Gradients) else 0.0
        return {name for name, value in due.items() if name in found and _same(value, found[name], floor)}


def _same(due: Any, found: Any, floor: float) -> bool:
    """Return whether two results agree. Numbers do not agree with True and False."""
    try:
        if is_array(due) and (due.dtype.kind == "b") != (np.asarray(found).dtype.kind == "b"):
            return False
        return equal(due, found, floor)
    except Exception:  # the learner's result may be anything
        return False
