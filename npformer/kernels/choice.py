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
    """Use the plain pairs inside a with block, for comparisons and measurements.

    A decoding that begins inside the block runs the plain layers too (see generation/state.py).
    """
    global _plain_only
    before, _plain_only = _plain_only, True
    try:
        yield
    finally:
        _plain_only = before


def is_plain_only() -> bool:
    """Return True inside a with block of `plain_pairs`."""
    return _plain_only


def choose(plain: Any, cpu: Any, gpu: Any = None) -> Any:
    """Return a function that calls a kernel if the kernel accepts the arguments, and `plain` otherwise.

    A kernel accepts arrays that all belong to one module and have the same dtype, float32 or float64.

    Args:
        plain: The function of npformer.functional.
        cpu: The kernel for NumPy arrays.
        gpu: The kernel for CuPy arrays.
    """
    kernels = {"numpy": cpu, "cupy": gpu}

    @wraps(plain)
    def chosen(*args: Any, **settings: Any) -> Any:
        kernel = None if _plain_only else kernels.get(_common_module(args))
        if kernel is not None:
            return kernel(*args, **settings)
        return plain(*map(_as_plain, args), **settings)

    return chosen


def _common_module(args: tuple[Any, ...]) -> str:
    """Return the module of all arrays, "numpy" or "cupy", or "" if no kernel accepts the arguments."""
    modules: set[str] = set()
    dtypes: set[Any] = set()
    if not _collect(args, modules, dtypes) or len(modules) != 1 or len(dtypes) != 1:
        return ""
    return modules.pop()


def _collect(args: tuple[Any, ...], modules: set[str], dtypes: set[Any]) -> bool:
    """Collect the modules and dtypes of all arrays, including the arrays in caches.

    Return False if there is an argument that no kernel accepts.
    """
    for arg in args:
        if isinstance(arg, tuple):
            if not _collect(arg, modules, dtypes):
                return False
            continue
        if type(arg) is np.ndarray:
            modules.add("numpy")
        elif is_cupy(arg):
            modules.add("cupy")
        elif isinstance(arg, (np.ndarray, complex)):
            return False  # a subclass of ndarray may, for example, count operations: use the plain pair
        else:
            continue
        if arg.dtype.kind in "fc":
            if arg.dtype.char not in "fd":  # float32 and float64
                return False
            dtypes.add(arg.dtype)
    return True


def _as_plain(arg: Any) -> Any:
    """Convert the cache of a kernel into a cache of the plain pair. Return other arguments unchanged.

    This is needed if the plain backward function gets the cache of a kernel, because dy has another dtype
    than the arrays of the forward pass.
    """
    if hasattr(arg, "as_plain"):
        return arg.as_plain()
    if not isinstance(arg, tuple):
        return arg
    parts = [_as_plain(part) for part in arg]
    return type(arg)(*parts) if hasattr(arg, "_fields") else tuple(parts)
