"""The choice between a plain pair and its kernel, made anew at every call by the arrays that it gets."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from npformer.backend import is_cupy

# what a caller may offer a kernel, to save memory: an array for the result, or to write over an argument;
# the plain versions never write into what they were given
OFFERS = ("out", "overwrite")

_plain_only = False


@contextmanager
def plain_pairs() -> Iterator[None]:
    """Let every layer call the plain versions inside this block: to compare, and to measure."""
    global _plain_only
    before, _plain_only = _plain_only, True
    try:
        yield
    finally:
        _plain_only = before


def choose(plain: Any, cpu: Any, gpu: Any = None) -> Any:
    """A function that calls the kernel of where the arrays lie, real and of one precision, else `plain`."""
    kernels = {"numpy": cpu, "cupy": gpu}

    @wraps(plain)
    def chosen(*args, **settings):
        kernel = None if _plain_only else kernels.get(_place(args))
        if kernel is not None:
            return kernel(*args, **settings)
        for offer in OFFERS:
            settings.pop(offer, None)
        return plain(*args, **settings)

    return chosen


def _place(things: tuple) -> str:
    """Where all arrays in these, caches included, lie: "numpy" or "cupy"; "" where they suit no kernel."""
    places: set[str] = set()
    dtypes: set[Any] = set()
    if not _look(things, places, dtypes) or len(places) > 1 or len(dtypes) > 1:
        return ""
    return places.pop() if places else "numpy"


def _look(things: tuple, places: set, dtypes: set) -> bool:
    """Collect the places of arrays and the dtypes of numbers; False where something suits no kernel."""
    for thing in things:
        if isinstance(thing, tuple):
            if not _look(thing, places, dtypes):
                return False
            continue
        if type(thing) is np.ndarray:
            places.add("numpy")
        elif is_cupy(thing):
            places.add("cupy")
        elif isinstance(thing, (np.ndarray, complex)):
            return False  # a subclass may count what is done to it: let it see the plain way
        else:
            continue
        if thing.dtype.kind == "c":
            return False
        if thing.dtype.kind == "f":
            dtypes.add(thing.dtype)
    return True
