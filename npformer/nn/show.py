"""Printing the arrays and settings of a cache by name."""

from collections.abc import Iterator
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
    for name, thing in members(cache):
        if is_array(thing):
            yield prefix + name, thing
        else:
            yield from named_arrays(thing, f"{prefix}{name}.")


def _lines(name: str, thing: Any, numbers: int, indent: str) -> Iterator[str]:
    inside = members(thing)
    if is_array(thing):
        yield f"{indent}{name} {_array(thing, numbers)}"
    elif inside:
        yield f"{indent}{name}"
        for inner, member in inside:
            yield from _lines(inner, member, numbers, indent + "  ")
    elif thing is not None:
        yield f"{indent}{name} = {thing!r}"


def _array(array: Array, numbers: int) -> str:
    first = to_numpy(array).reshape(-1)[:numbers]
    values = np.array2string(first, precision=4, separator=" ", suppress_small=True).strip("[]")
    more = " …" if array.size > numbers else ""
    return f"({', '.join(map(str, array.shape))}) {array.dtype}: {values}{more}"
