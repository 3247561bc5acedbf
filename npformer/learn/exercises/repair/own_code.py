"""The functions of the learner's file, whose syntax trees the repair changes."""

import ast
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

from npformer.checking.repair.source import EditableFunction
from npformer.learn.exercises.time_limit import TimeLimit

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
    started = [ast.dump(node) for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    return [ast.dump(function.definition) for function in functions] == started


@contextmanager
def limited(file: str, limit: TimeLimit) -> Iterator[None]:
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
