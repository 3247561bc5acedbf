"""Repairs of the learner's own code: edits after which all results of an exercise are right.

The child process tries the edits of npformer.mistakes in the learner's functions. If all results of all
trials are then right, the edit names the mistake and its line. The message says what is wrong in the line.
It never shows the correct line.
"""

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import is_array
from npformer.language import say
from npformer.learn.exercises.agreement import equal, floor_of, results_of
from npformer.learn.exercises.exercise import Exercise, Gradients
from npformer.learn.exercises.inputs import with_kept_inputs
from npformer.mistakes.budget import Budget
from npformer.mistakes.mutants import source_of
from npformer.mistakes.scope import scope_of
from npformer.mistakes.search import Right, Search
from npformer.mistakes.source import EditableFunction
from npformer.mistakes.syntax import Definition

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
    imported = [*_imported(functions, plain)]
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


def _imported(namespace: dict[str, Any], plain: Iterable[Definition]) -> Iterable[str]:
    """Yield the names of the functions that come from the package.

    Of npformer.functional, these are the functions that the plain solution calls.
    """
    for name, thing in namespace.items():
        if isinstance(thing, FunctionType) and str(thing.__module__).startswith("npformer."):
            yield name
        elif thing is F:
            nodes = [node for definition in plain for node in ast.walk(definition)]
            used = (n.attr for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "F")
            yield from dict.fromkeys(f"{name}.{attribute}" for attribute in used)


def _sentence(goal: "RightResults", search: Search) -> str:
    """Return what is wrong and which results are right after the edits, or "" if it is unknown."""
    if not search.made:
        return ""
    says = say("; and ").join(map(str, search.made))
    change = say("this change") if len(search.made) == 1 else say("these changes")
    if search.is_successful:
        return say("{says} (with {change} all results are right)", says=says, change=change)
    is_likely = all(edit.is_likely for edit in search.made)
    if is_likely and goal.has_another_trial(search.right, search.before):
        return say(
            "{says} (with {change} the first wrong results are right, and others are still wrong)",
            says=says,
            change=change,
        )
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
        self._limit = Budget(SECONDS)
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


# ---------------------------------------------------------------------------------------------------------
# The functions of the learner's file


STEPS = 20_000  # lines that a changed function may run in a trial


class TooManySteps(Exception):
    """A changed loop does not end."""


def editable_functions(file: str, functions: dict[str, Any]) -> list[EditableFunction]:
    """Return the functions that the learner's file defines: the learner's functions and their helpers.

    Args:
        file: The learner's file.
        functions: The learner's functions by name.

    Raises:
        LookupError: If the file does not define the learner's functions with def.
    """
    linecache.checkcache(file)
    if not all(isinstance(function, FunctionType) for function in functions.values()):
        raise LookupError("a function is not defined with def")
    namespace = next(iter(functions.values())).__globals__
    found = [thing for thing in namespace.values() if isinstance(thing, FunctionType)]
    own = [thing for thing in found if thing.__code__.co_filename == file and thing.__name__ != "<lambda>"]
    if not all(function in own for function in functions.values()):
        raise LookupError(f"{file} does not define all functions")
    return [EditableFunction(function.__code__) for function in dict.fromkeys(own)]


def is_stub(functions: list[EditableFunction], stub: str) -> bool:
    """Return whether functions are those of the stub, without a solution."""
    started = [_code(node) for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    return [_code(function.definition) for function in functions] == started


def _code(function: Definition) -> list[str]:
    """Return the code of a function without its docstring, which may be in another language."""
    body = function.body if isinstance(function.body, list) else [function.body]
    if isinstance(function, ast.FunctionDef) and ast.get_docstring(function) is not None:
        body = body[1:]
    return [ast.dump(part) for part in (function.args, *body)]


@contextmanager
def limited(file: str, limit: Budget) -> Iterator[None]:
    """Raise `TooManySteps` in a function with a loop that does not end, or that takes too long.

    A list that contains itself ends the function too: np.array would fill the memory with it.

    Args:
        file: The learner's file.
        limit: The limit of the search.
    """
    steps = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != file:
            return None  # raised here, in a finalizer, it would be lost, and the tracing with it
        steps += 1
        if steps > STEPS or limit.is_over() or _has_list_in_itself(frame):
            raise TooManySteps
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)


def _has_list_in_itself(frame: FrameType) -> bool:
    """Return whether a local list ends with itself, after an edit such as p = rows before rows.append(p)."""
    return any(isinstance(value, list) and value and value[-1] is value for value in frame.f_locals.values())
