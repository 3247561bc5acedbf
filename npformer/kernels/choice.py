"""The choice between a plain pair and its kernel.

The first array decides which forward pass runs. A backward pass belongs to the forward pass that made its
cache: each kernel returns a cache of its own class, and the class leads to the backward pass of the kernel.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from npformer.backend import Array, is_cupy

P = ParamSpec("P")
R = TypeVar("R")
Cache = TypeVar("Cache")
Backward = TypeVar("Backward", bound=Callable[..., Any])

_backward_of: dict[type, Callable[..., Any]] = {}  # the backward pass of a kernel, by the class of its caches
_plain_only = False


@contextmanager
def plain_pairs() -> Iterator[None]:
    """Use the plain forward passes inside a with block, for comparisons and measurements.

    Their caches lead to the plain backward passes, inside the block and after it. A decoding that begins
    inside the block runs the plain layers too (see generation/state.py).
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


def choose(
    plain: Callable[P, R],
    cpu: Callable[..., Any],
    gpu: Callable[..., Any],
    *,
    by: int = 0,
    beside: int | None = None,
) -> Callable[P, R]:
    """Return a forward pass that calls a kernel if the array that decides suits it, and `plain` otherwise.

    The kernels accept arrays of NumPy and of CuPy in float32 and in float64. All others take the plain pair:
    float16, complex numbers, and subclasses of ndarray, which may, for example, count operations.

    Args:
        plain: The function of npformer.functional.
        cpu: The kernel for NumPy arrays.
        gpu: The kernel for CuPy arrays.
        by: The index of the argument that decides.
        beside: The index of an array that must have the same dtype, such as the weight beside x. If it has
            another one, the plain pair runs, so that NumPy's promotion decides. By default, no second array
            is compared. A kernel converts further arrays, such as a bias, to the dtype of the first one.
    """
    beside = by if beside is None else beside
    names = list(inspect.signature(plain).parameters)

    @wraps(plain)
    def chosen(*args: P.args, **settings: P.kwargs) -> R:
        x: Any = args[by] if by < len(args) else settings.get(names[by])
        other: Any = args[beside] if beside < len(args) else settings.get(names[beside])
        kernel: Any = cpu if type(x) is np.ndarray else gpu if is_cupy(x) else plain
        if (
            _plain_only
            or kernel is plain
            or x.dtype.char not in "fd"
            or getattr(other, "dtype", None) != x.dtype
        ):
            kernel = plain
        return kernel(*args, **settings)

    return chosen


def choose_by_cache(plain: Callable[[Any, Any], R]) -> Callable[[Any, Any], R]:
    """Return a backward pass (dy, cache): that of the kernel that made the cache, or otherwise `plain`."""

    @wraps(plain)
    def chosen(dy: Any, cache: Any) -> R:
        backward: Callable[[Any, Any], R] = _backward_of.get(type(cache), plain)
        return backward(dy, cache)

    return chosen


def backward_of(*caches: type) -> Callable[[Backward], Backward]:
    """Decorate the backward pass of a kernel, whose forward pass returns caches of these classes."""

    def register(backward: Backward) -> Backward:
        _backward_of.update(dict.fromkeys(caches, backward))
        return backward

    return register


def with_cache(
    forward: Callable[P, tuple[Array, Any]], cache_class: Callable[..., Cache]
) -> Callable[P, tuple[Array, Cache]]:
    """Return a forward pass that computes the same, and whose cache leads to another backward pass.

    Args:
        forward: The forward pass, whose cache is a named tuple.
        cache_class: The class of the new cache, which has the same fields.
    """

    @wraps(forward)
    def computed(*args: P.args, **settings: P.kwargs) -> tuple[Array, Cache]:
        y, cache = forward(*args, **settings)
        return y, cache_class(*cache)

    return computed
