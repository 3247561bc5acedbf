"""Unevaluated gradients of weights: a matrix product, and the rows of a table.

The gradient of a weight is as large as the weight. If its value is written directly into the gradient of the
parameter, one array of this size and one pass over it are saved (see Parameter.accumulate).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npformer.backend import Array, array_module, is_cupy, to_numpy


class Lazy:
    """The base class of unevaluated arrays: evaluate computes the array, add_to adds it to another one."""

    def evaluate(self) -> Array:
        """Return the array."""
        raise NotImplementedError

    def add_to(self, destination: Array, *, is_zero: bool) -> None:
        """Add the array to the destination. `is_zero` is True if all entries of the destination are 0."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(to_numpy(self.evaluate()), dtype)


@dataclass(frozen=True, eq=False)
class LazyProduct(Lazy):
    """The product leftᵀ right, or its transpose: the gradient of the weight of a linear map.

    Shapes: left (N, I), right (N, O) -> (I, O), or (O, I) if transposed.
    """

    left: Array
    right: Array
    transposed: bool = False

    @property
    def T(self) -> "LazyProduct":
        """The transpose, which is unevaluated too."""
        return replace(self, transposed=not self.transposed)

    @property
    def dtype(self) -> Any:
        """The dtype of the product."""
        return np.result_type(self.left.dtype, self.right.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the product."""
        shape = (self.left.shape[1], self.right.shape[1])
        return shape[::-1] if self.transposed else shape

    def evaluate(self) -> Array:
        """Return the product."""
        product = self.left.T @ self.right
        return product.T if self.transposed else product

    def add_to(self, destination: Array, *, is_zero: bool) -> None:
        """Add the product to the destination, or write it there if all entries of the destination are 0."""
        if not is_zero:
            destination += self.evaluate()
            return
        # (leftᵀ right)ᵀ = rightᵀ left, so matmul can write directly into the contiguous destination
        left, right = (self.right, self.left) if self.transposed else (self.left, self.right)
        array_module(left).matmul(left.T, right, out=destination)


@dataclass(frozen=True, eq=False)
class LazyRows(Lazy):
    """The gradient of a table of n rows: `rows` are added at the indices `ids`, and the other rows are 0.

    Shapes: ids (N,) integers in [0, n), rows (N, D) -> (n, D).
    """

    ids: Array
    rows: Array
    n: int

    @property
    def dtype(self) -> Any:
        """The dtype of the rows."""
        return self.rows.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return (self.n, self.rows.shape[1])

    def evaluate(self) -> Array:
        """Return an array of the shape of the table, with 0 in the rows that were not read."""
        table = array_module(self.rows).zeros(self.shape, self.rows.dtype)
        self.add_to(table, is_zero=True)
        return table

    def add_to(self, destination: Array, *, is_zero: bool) -> None:
        """Add the rows in place."""
        if is_cupy(self.rows):  # an index may occur several times, and add.at adds all its rows
            array_module(self.rows).add.at(destination, self.ids, self.rows)
        else:  # each index occurs once
            destination[self.ids] += self.rows
