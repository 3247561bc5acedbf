"""What a cell defined, in one line: arrays by their shapes, caches by their names."""

import ast
import types

import numpy as np

from npformer.backend import is_array
from npformer.show import as_text


def defined(before: dict, after: dict) -> list[str]:
    """A phrase for each name of the lesson's own that is new, or bound to another object; none for texts."""
    return [
        describe(name, value)
        for name, value in own(after).items()
        if (name not in before or before[name] is not value) and not isinstance(value, str)
    ]


def own(namespace: dict) -> dict:
    """The names of a namespace without those that begin with _ and those that were imported."""
    return {n: value for n, value in namespace.items() if not n.startswith("_") and _made_here(value)}


def bound_names(code: str) -> set[str]:
    """The names that some code defines."""
    nodes = list(ast.walk(ast.parse(code)))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def loop_names(code: str) -> set[str]:
    """The names that count in a `for` of some code: where they end is nothing to tell of."""
    loops = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.For)]
    return {name.id for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name)}


def _made_here(value) -> bool:
    """Whether a lesson made it, and did not import it."""
    if isinstance(value, types.ModuleType):
        return False
    if isinstance(value, types.BuiltinFunctionType | np.ufunc) or type(value).__name__ == "Figure":
        return False  # a figure is shown anyway
    if isinstance(value, types.FunctionType | type):
        return value.__module__ == "__main__"
    return True


def describe(name: str, value) -> str:
    """A name with its shape, its number, or its type."""
    if is_array(value):
        kind = "" if value.dtype == np.float64 else f" {value.dtype}"
        return f"{name} {value.shape}{kind}"
    if isinstance(value, types.FunctionType):
        return f"{name}()"
    if isinstance(value, bool | int | float | complex | np.generic):
        return f"{name} = {value:.6g}" if isinstance(value, float | np.floating) else f"{name} = {value}"
    if isinstance(value, str):
        return f"{name} = {value!r}" if len(value) <= 30 else f"{name} str"
    if type(value) in (list, tuple, dict, set):
        return f"{name} {type(value).__name__} of {len(value)}"
    return f"{name} {type(value).__name__}"


def in_full(name: str, value) -> str:
    """A variable as `s` shows it: a cache name by name, an array with its numbers where there are few."""
    if is_array(value):
        numbers = np.array2string(
            np.asarray(value), precision=4, suppress_small=True, threshold=120, edgeitems=3
        )
        return f"{describe(name, value)}\n{numbers}"
    if hasattr(value, "_fields") or isinstance(value, list | tuple):
        return as_text(value).replace(type(value).__name__, f"{name}: {type(value).__name__}", 1)
    return f"{describe(name, value)}\n{value!r}"[:2000]
