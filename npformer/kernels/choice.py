"""The choice between a plain pair and its kernel, made anew at every call by the arrays that it gets."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from npformer.backend import is_array

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


def choose(plain: Any, fast: Any) -> Any:
    """A function that calls `fast` where all arrays are NumPy's, real and of one precision, else `plain`."""

    @wraps(plain)
    def chosen(*args, **settings):
        if not _plain_only and _suits_kernels(args, set()):
            return fast(*args, **settings)
        for offer in OFFERS:
            settings.pop(offer, None)
        return plain(*args, **settings)

    return chosen


def _suits_kernels(things: tuple, dtypes: set) -> bool:
    """Whether all arrays in these, caches included, are NumPy's, real, and of one precision."""
    for thing in things:
        if type(thing) is np.ndarray:  # a subclass may count what is done to it: let it see the plain way
            if thing.dtype.kind == "f":
                dtypes.add(thing.dtype)
            elif thing.dtype.kind == "c":
                return False
        elif isinstance(thing, tuple):
            if not _suits_kernels(thing, dtypes):
                return False
        elif is_array(thing) or isinstance(thing, complex):
            return False
    return len(dtypes) <= 1
