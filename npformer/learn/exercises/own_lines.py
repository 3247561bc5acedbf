"""The line of the learner's file that a mistake belongs to, found by the numbers that the lines compute.

A mistake is known as a change of the plain solution. With the mistake, this computes some numbers that it
does not compute without it. The first line of the learner's function that computes such a number is the line
with the mistake, whatever its variables are called.
"""

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from npformer.learn.exercises.agreement import results_of
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.inputs import with_kept_inputs
from npformer.mistakes.mutants import source_of

Noted: TypeAlias = list[tuple[int, tuple[int, str]]]  # lines and the numbers that they compute, shortened

NOTE = "_note"  # the name of the function that notes a value
MOST = 20_000  # values that are noted
VALUES = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare, ast.IfExp, ast.Subscript)


def own_line(
    exercise: Exercise, number: int, functions: dict[str, Any], changed: dict[str, Any], file: str
) -> str:
    """Return a phrase such as " (line 9 computes m_hat in your file)", or "" if no line is found.

    Args:
        exercise: The exercise.
        number: The number of the trial that is wrong.
        functions: The learner's functions by name.
        changed: The plain solution with the mistake.
        file: The learner's file.
    """
    try:
        text = Path(file).read_text(encoding="utf-8")
        tree = ast.parse(text)
        own = {name: (text, functions[name]) for name in exercise.solution}
        lines = _noted(exercise, number, own)
        with_mistake, without = (
            {value for _, value in _noted(exercise, number, sources)}
            for sources in (
                {name: (changed_text(function), function) for name, function in changed.items()},
                {name: (source_of(function), function) for name, function in exercise.plain.items()},
            )
        )
    except Exception:  # the learner's file may hold anything
        return ""
    line = next((line for line, value in lines if value in with_mistake - without), 0)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _is_at(node, line)]
    return f" (line {line}{_action(statements[-1])} in your file)" if statements else ""


def changed_text(function: Any) -> str:
    """Return the source of a function of a solution, with or without a mistake."""
    return ast.unparse(function.tree) if hasattr(function, "tree") else source_of(function)


def _is_at(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _action(statement: ast.stmt) -> str:
    """Return what a statement does, in words."""
    match statement:
        case ast.Return():
            return " returns the result"
        case ast.Assign(targets=[target, *_]):
            return f" computes {ast.unparse(target).strip('()').split('[')[0]}"
        case ast.AugAssign(target=target):
            return f" changes {ast.unparse(target).split('[')[0]}"
    return ""


def _noted(exercise: Exercise, number: int, sources: dict[str, tuple[str, Callable[..., Any]]]) -> Noted:
    """Return what some functions compute in a trial: the lines in their order, with the values."""
    noted: Noted = []
    functions = {}
    for name, (text, function) in sources.items():
        tree = ast.parse(text)
        tree.body = [_Noting().visit(node) for node in tree.body if isinstance(node, ast.FunctionDef)]
        namespace = function.__globals__ | {NOTE: partial(_note, noted)}
        exec(compile(ast.fix_missing_locations(tree), "<noted>", "exec"), namespace)
        functions[name] = namespace[name]
    results_of(exercise.trials[number], with_kept_inputs(exercise, functions))
    return noted


def _note(noted: Noted, value: Any, line: int) -> Any:
    """Note a number or an array of numbers, and return it."""
    numbers = np.asarray(value) if isinstance(value, np.ndarray | np.generic | int | float) else None
    if numbers is not None and numbers.dtype.kind in "bif" and len(noted) < MOST:
        flat = np.nan_to_num(numbers.astype(np.float64).reshape(-1))
        noted.append((line, (flat.size, f"{flat @ np.cos(np.arange(flat.size)):.7g}")))
    return value


class _Noting(ast.NodeTransformer):
    """Notes the value of each operation and call, and of a variable that a step changes."""

    def visit(self, node: ast.AST) -> Any:
        inner = self.generic_visit(node)
        if isinstance(node, VALUES) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return _noting(inner, node.lineno)
        if isinstance(node, ast.AugAssign):
            target = ast.parse(ast.unparse(node.target), mode="eval").body
            return [inner, ast.Expr(_noting(target, node.lineno))]
        return inner


def _noting(node: Any, line: int) -> ast.Call:
    return ast.Call(ast.Name(NOTE, ast.Load()), [node, ast.Constant(line)], [])
