"""Mistakes that are made in the source of a solution."""

import ast
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from npformer.mistakes.tables import Mistake

Function: TypeAlias = Callable[..., Any]


def with_mistakes(solution: dict[str, Function], mistakes: Sequence[Mistake]) -> dict[str, Function]:
    """Return the solution with these mistakes, or without some if one removed the code of another.

    Raises:
        ValueError: If the only mistake does not fit the source.
    """
    changed = dict(solution)
    for name, function in solution.items():
        text = plain = source_of(function)
        for old, new in (change for mistake in mistakes for change in mistake.changes):
            text = text.replace(old, new)
        if text != plain:
            changed[name] = _compiled(ast.parse(text), function)
    if changed == solution:
        raise ValueError(f"no function of the solution contains {mistakes[0].changes[0][0]!r}")
    return changed


@cache
def source_of(function: Function) -> str:
    """Return the source text of a function of a solution, without its docstring."""
    text = inspect.getsource(function)
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    first = definition.body[0]
    docstring = range(first.lineno, (first.end_lineno or 0) + 1) if ast.get_docstring(definition) else ()
    lines = enumerate(text.splitlines(keepends=True), 1)
    return "".join(line for number, line in lines if number not in docstring)


def _compiled(tree: ast.Module, function: Function) -> Function:
    """Return the function of a changed tree, in the namespace of the unchanged one."""
    namespace = dict(function.__globals__)
    exec(compile(tree, "<changed>", "exec"), namespace)
    changed = namespace[function.__name__]
    changed.tree = tree
    return changed
