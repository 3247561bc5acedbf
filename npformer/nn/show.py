"""Functions that print the arrays and settings of a cache, each with its name, and the tree of a module."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from npformer.backend import Array, is_array, to_numpy
from npformer.functional.caches import members


def show(cache: Any, *, numbers: int = 3) -> None:
    """Print every array of a cache, or of any nested tuple, with its shape and its first numbers.

    as_text returns the same text as a string.
    """
    print(as_text(cache, numbers=numbers))


def as_text(cache: Any, *, numbers: int = 3) -> str:
    """Return the lines that show prints."""
    return "\n".join(_lines(type(cache).__name__, cache, numbers, ""))


def named_arrays(cache: Any, prefix: str = "") -> Iterator[tuple[str, Array]]:
    """Yield pairs (dotted name, array) of all arrays in a cache, in its order."""
    for name, member in members(cache):
        if is_array(member):
            yield prefix + name, member
        else:
            yield from named_arrays(member, f"{prefix}{name}.")


def _lines(name: str, value: Any, numbers: int, indent: str) -> Iterator[str]:
    """Yield the lines of one member of a cache, followed by those of its own members."""
    inner_members = members(value)
    if is_array(value):
        yield f"{indent}{name} {_array(value, numbers)}"
    elif inner_members:
        yield f"{indent}{name}"
        for inner_name, member in inner_members:
            yield from _lines(inner_name, member, numbers, indent + "  ")
    elif value is not None:
        yield f"{indent}{name} = {value!r}"


def _array(array: Array, numbers: int) -> str:
    first = to_numpy(array).reshape(-1)[:numbers]
    values = np.array2string(first, precision=4, separator=" ", suppress_small=True).strip("[]")
    more = " …" if array.size > numbers else ""
    return f"({', '.join(map(str, array.shape))}) {array.dtype}: {values}{more}"


def tree(module: Any) -> list[str]:
    """Return the lines of the repr of a Module: one for each module, with the shapes of its parameters.

    Neighbouring modules with equal lines, such as the layers of a stack, are printed once.
    """
    shapes, trees = [], []
    for name, child in module.children():
        if hasattr(child, "children"):
            trees.append((name, tree(child)))
        else:
            shapes.append(f"{name} {child.shape}")
    lines = [type(module).__name__ + (f"({', '.join(shapes)})" if shapes else "")]
    for lines_of_child, equal in groupby(trees, key=lambda pair: pair[1]):
        names = [name for name, _ in equal]
        label = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        lines += [f"  {label}: {lines_of_child[0]}", *(f"  {line}" for line in lines_of_child[1:])]
    return lines
