"""The line of the learner's file that a mistake belongs to, found by the numbers that the lines compute.

A mistake is known as a change of the plain solution. With the mistake, this computes some numbers that it
does not compute without it. The first line of the learner's function that computes such a number is the line
with the mistake, whatever its variables are called. If a step is left out, there is no such number: then it
is the last line that computes the wrong result.
"""

import ast
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from npformer.language import say
from npformer.learn.exercises.agreement import results_of
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.inputs import with_kept_inputs
from npformer.mistakes.mutants import source_of

Number: TypeAlias = tuple[int, str]  # the size of a number or an array, and one number for all of its entries
Noted: TypeAlias = list[tuple[int, Number]]  # lines, and what they compute

NOTE = "_note"  # the name of the function that notes a value
MOST = 20_000  # values that are noted
VALUES = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare, ast.IfExp, ast.Subscript, ast.Attribute)
CHANGED = (ast.Name, ast.Attribute, ast.Subscript)


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
        text = Path(file).read_text(encoding="utf-8-sig")
        tree = ast.parse(text)
        own = {name: (text, functions[name]) for name in exercise.solution}
        lines, _ = _noted(exercise, number, own)
        (wrong, wrong_results), (right, right_results) = (
            _noted(exercise, number, {name: (text_of(f), f) for name, f in solution.items()})
            for solution in (changed, exercise.plain)
        )
    except Exception:  # the learner's file may hold anything
        return ""
    # the mistake is in no line that the learner's file begins with
    given, written = {each.strip() for each in exercise.stub.splitlines()}, text.split("\n")
    lines = [(line, value) for line, value in lines if written[line - 1].strip() not in given]
    new = {value for _, value in wrong} - {value for _, value in right}
    found = [line for line, value in lines if value in new][:1]
    found += [line for line, value in lines if value in wrong_results - right_results][-1:]
    line = found[0] if found else 0
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _is_at(node, line)]
    return (
        say(" (line {line}{action} in your file)", line=line, action=_action(statements[-1]))
        if statements
        else ""
    )


def without_lines(clue: str) -> str:
    """Return a sentence about a mistake without the lines of one learner's file, for a count of mistakes."""
    line, text = "\0", "\1"
    parts = (
        (say(" (line {line}{action} in your file)", line=line, action=text), ""),
        (say(" ({name} is the gradient of {array})", name=text, array=text), ""),
        (say("line {line}: {says}", line=line, says=""), ""),
        (say(", in line {line}", line=line), ""),
        (say("line {line} raised", line=line), say("your code raised")),
    )
    for part, other in parts:
        pattern = re.escape(part).replace(line, r"\d+").replace(text, "[^()（）]*")
        clue = re.sub(pattern, other, clue)
    return clue


def text_of(function: Any) -> str:
    """Return the source of a function of a solution, with or without a mistake."""
    return ast.unparse(function.tree) if hasattr(function, "tree") else source_of(function)


def _is_at(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _action(statement: ast.stmt) -> str:
    """Return what a statement does, in words."""
    match statement:
        case ast.Return():
            return say(" returns the result")
        case ast.Assign(targets=[target, *_]):
            return say(" computes {target}", target=ast.unparse(target).strip("()").split("[")[0])
        case ast.AugAssign(target=target):
            return say(" changes {target}", target=ast.unparse(target).split("[")[0])
    return ""


def _noted(
    exercise: Exercise, number: int, sources: dict[str, tuple[str, Callable[..., Any]]]
) -> tuple[Noted, set[Number]]:
    """Return what some functions compute in a trial: the lines in their order, and the results."""
    noted: Noted = []
    functions = {}
    for name, (text, function) in sources.items():
        tree = ast.parse(text)
        tree.body = [_Noting().visit(node) for node in tree.body if isinstance(node, ast.FunctionDef)]
        namespace = function.__globals__ | {NOTE: partial(_note, noted)}
        exec(compile(ast.fix_missing_locations(tree), "<noted>", "exec"), namespace)
        functions[name] = namespace[name]
    results = results_of(exercise.trials[number], with_kept_inputs(exercise, functions))
    found: Noted = []
    for value in results.values():
        _note(found, value, 0)
    return noted, {value for _, value in found}


def _note(noted: Noted, value: Any, line: int) -> Any:
    """Note a number or an array of numbers, and return it."""
    numbers = np.asarray(value) if isinstance(value, np.ndarray | np.generic | int | float) else None
    if numbers is not None and numbers.dtype.kind in "bif" and len(noted) < MOST:
        flat = np.nan_to_num(numbers.astype(np.float64).reshape(-1))
        noted.append((line, (flat.size, f"{flat @ np.cos(np.arange(flat.size)):.7g}")))
    return value


class _Noting(ast.NodeTransformer):
    """Notes the value of each operation and call, and then those of the variables that a step changes."""

    def visit(self, node: Any) -> Any:
        changed: list[ast.expr] = []
        match node:
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
                changed = target.elts if isinstance(target, ast.Tuple) else [target]
            case ast.Expr(value=ast.Call(args=args)):
                changed = args
        texts = [ast.unparse(part) for part in changed if isinstance(part, CHANGED)]
        texts += [text.partition("[")[0] for text in texts if "[" in text]
        inner = self.generic_visit(node)
        if isinstance(node, VALUES) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return _noting(inner, node.lineno)
        notes = [ast.Expr(_noting(ast.parse(text, mode="eval").body, node.lineno)) for text in texts]
        return [inner, *notes] if notes else inner


def _noting(node: Any, line: int) -> ast.Call:
    return ast.Call(ast.Name(NOTE, ast.Load()), [node, ast.Constant(line)], [])
