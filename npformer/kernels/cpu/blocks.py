"""What the kernels for NumPy share: blocks that stay in a core's cache, and sums as products."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

BLOCK = 1 << 16  # numbers in a block: 256 KB of float32, a quarter of what a core's own cache often holds


def blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, `width` numbers each, of about BLOCK numbers: several passes over one read it once."""
    step = max(1, BLOCK // max(1, width))
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))


@lru_cache(maxsize=256)
def ones(n: int, dtype: np.dtype) -> np.ndarray:
    """n ones: x @ ones is the sum of each row, ones @ x that of each column, three times as fast as sum."""
    array = np.ones(n, dtype)
    array.flags.writeable = False
    return array


def row_sums(x: np.ndarray) -> np.ndarray:
    """The sum of each row. Shapes: x (..., D) -> (...)."""
    return x @ ones(x.shape[-1], x.dtype)


def column_sums(x: np.ndarray) -> np.ndarray:
    """The sum of each column. Shapes: x (N, D) -> (D,)."""
    return ones(len(x), x.dtype) @ x
