"""Helpers of the kernels for NumPy: blocks that fit into a processor cache, and sums as matrix products."""

from functools import lru_cache
from typing import Any

import numpy as np

from npformer.backend import Array

# the number of entries of a block: 256 KB of float32, a quarter of the L2 cache that a core typically has
BLOCK = 1 << 16


@lru_cache(maxsize=64)
def blocks(n_rows: int, width: int) -> tuple[slice, ...]:
    """Return slices of the rows of a matrix (n_rows, width), with about BLOCK entries each.

    Several operations on one block read it from the main memory only once.
    """
    step = max(1, BLOCK // max(1, width))
    return tuple(slice(start, min(n_rows, start + step)) for start in range(0, n_rows, step))


@lru_cache(maxsize=256)
def ones(n: int, dtype: Any) -> Array:
    """Return an array of n ones. x @ ones and ones @ x are sums of x, three times as fast as x.sum."""
    array = np.ones(n, dtype)
    array.flags.writeable = False
    return array


def row_sums(x: Array) -> Array:
    """Return the sum of each row. Shapes: x (..., D) -> (...)."""
    return x @ ones(x.shape[-1], x.dtype)


def column_sums(x: Array) -> Array:
    """Return the sum of each column. Shapes: x (N, D) -> (D,)."""
    return ones(len(x), x.dtype) @ x
