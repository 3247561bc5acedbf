"""The choice between a plain pair and its kernel, which depends on the arguments of each call."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from npformer.backend import is_cupy

_plain_only = False


@contextmanager
def plain_pairs() -> Iterator[None]:
    """Use the plain pairs inside a with block, for comparisons and measurements."""
    global _plain_only
    before, _plain_only = _plain_only, True
    try:
        yield
    finally:
        _plain_only = before


def choose(plain: Any, cpu: Any, gpu: Any = None) -> Any:
    """Return a function that calls a kernel if the arguments allow it, and `plain` otherwise.

    A kernel needs arrays of one module and of one dtype, float32 or float64.

    Args:
        plain: The function of npformer.functional.
        cpu: The kernel for NumPy arrays.
        gpu: The kernel for CuPy arrays.
    """
    kernels = {"numpy": cpu, "cupy": gpu}

    @wraps(plain)
    def chosen(*args: Any, **settings: Any) -> Any:
        kernel = None if _plain_only else kernels.get(_place(args))
        if kernel is not None:
            return kernel(*args, **settings)
        return plain(*map(_as_plain, args), **settings)

    return chosen


def _place(things: tuple[Any, ...]) -> str:
    """Return "numpy" or "cupy", the module of all arrays and caches, or "" if no kernel accepts them."""
    places: set[str] = set()
    dtypes: set[Any] = set()
    if not _collect(things, places, dtypes) or len(places) != 1 or len(dtypes) != 1:
        return ""
    return places.pop()


def _collect(things: tuple[Any, ...], places: set[str], dtypes: set[Any]) -> bool:
    """Collect the modules and dtypes of all arrays. Return False if no kernel accepts one of them."""
    for thing in things:
        if isinstance(thing, tuple):
            if not _collect(thing, places, dtypes):
                return False
            continue
        if type(thing) is np.ndarray:
            places.add("numpy")
        elif is_cupy(thing):
            places.add("cupy")
        elif isinstance(thing, (np.ndarray, complex)):
            return False  # a subclass of ndarray may, for example, count operations: use the plain pair
        else:
            continue
        if thing.dtype.kind in "fc":
            if thing.dtype.char not in "fd":  # float32 and float64
                return False
            dtypes.add(thing.dtype)
    return True


def _as_plain(thing: Any) -> Any:
    """Convert the cache of a kernel into a cache of the plain pair. Return other arguments unchanged.

    So the backward pass works with a dy of another dtype than that of the forward pass.
    """
    if hasattr(thing, "as_plain"):
        return thing.as_plain()
    if not isinstance(thing, tuple):
        return thing
    parts = [_as_plain(part) for part in thing]
    return type(thing)(*parts) if hasattr(thing, "_fields") else tuple(parts)
