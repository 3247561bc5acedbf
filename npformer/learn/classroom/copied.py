"""Find solutions that call the package's own function instead of computing the result."""

import ast
from collections.abc import Iterator

from npformer.learn.exercises import Exercise


def own_function_of_package(exercise: Exercise, text: str) -> str:
    """Return a sentence for the teacher about a use of the package's own solution, or "".

    This finds imports and attributes by their names. A solution that hides what it calls is not found.

    Args:
        exercise: The exercise.
        text: The text of the solution.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    solutions = {function.__name__ for function in exercise.solution.values()} | set(exercise.solution)
    given = {name for _, name in _taken(ast.parse(exercise.stub))}  # what the learner's file begins with
    for line, name in _taken(tree):
        if name in solutions or (name.startswith("npformer.learn") and name not in given):
            return f"line {line} uses npformer's own {name}: look at this solution"
    return ""


def _taken(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, name) for what a program takes from npformer: modules, imported names, attributes."""
    modules = set()  # the names that stand for npformer or one of its modules
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_package(alias.name):
                    modules.add(alias.asname or "npformer")
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and _is_package(node.module):
            yield node.lineno, str(node.module)
            for alias in node.names:
                modules.add(alias.asname or alias.name)
                yield node.lineno, alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _first_name(node) in modules:
            yield node.lineno, node.attr


def _is_package(module: str | None) -> bool:
    return (module or "").split(".")[0] == "npformer"


def _first_name(node: ast.expr) -> str:
    """Return the name with which a chain of attributes begins, or ""."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
