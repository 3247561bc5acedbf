"""show: what a cache holds, name by name."""

from dataclasses import fields, is_dataclass

import numpy as np

from npformer.backend import is_array, to_numpy


def show(cache, *, numbers=3):
    """Print every name of a cache (or any tree of tuples) with its shape and first numbers.

    Returns nothing; as_text gives the same as a string.
    """
    print(as_text(cache, numbers=numbers))


def as_text(cache, *, numbers=3):
    """The lines that show prints."""
    return "\n".join(_lines(type(cache).__name__, cache, numbers, ""))


def named_arrays(cache, prefix=""):
    """Pairs (dotted name, array) of every array in a cache, in its own order."""
    for name, thing in _members(cache):
        if is_array(thing):
            yield prefix + name, thing
        else:
            yield from named_arrays(thing, f"{prefix}{name}.")


def _members(thing):
    """Pairs (name, member) of a NamedTuple, a dataclass or a sequence; nothing for anything else."""
    if hasattr(thing, "_fields"):
        return list(zip(thing._fields, thing, strict=True))
    if is_dataclass(thing) and not isinstance(thing, type):
        return [(field.name, getattr(thing, field.name)) for field in fields(thing)]
    if isinstance(thing, (tuple, list)) and any(is_array(t) or _members(t) for t in thing):
        return [(str(index), item) for index, item in enumerate(thing)]
    return []


def _lines(name, thing, numbers, indent):
    members = _members(thing)
    if is_array(thing):
        yield f"{indent}{name} {_array(thing, numbers)}"
    elif members:
        yield f"{indent}{name}"
        for inner, member in members:
            yield from _lines(inner, member, numbers, indent + "  ")
    elif thing is not None:
        yield f"{indent}{name} = {thing!r}"


def _array(array, numbers):
    first = to_numpy(array).reshape(-1)[:numbers]
    values = np.array2string(first, precision=4, separator=" ", suppress_small=True).strip("[]")
    more = " …" if array.size > numbers else ""
    return f"({', '.join(map(str, array.shape))}) {array.dtype}: {values}{more}"
