"""DiagnosisContext: a wrong result, the right one, and arrays and numbers that may explain the difference."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.backend import Array


@dataclass(frozen=True)
class DiagnosisContext:
    """The argument of every pattern.

    Args:
        right: The right result.
        found: The wrong result, of the same shape.
        dy: The gradient of the output, which is the argument of backward, or None.
        arrays: The inputs and the arrays of the cache by name.
        others: The right gradients of the other tensors by name.
        numbers: Pairs (number, description) that may explain a factor.
        rtol: The relative tolerance of comparisons.
        operands: The arrays of which formulas are made: the parameters, and the variables of the backward
            pass. Empty for exercises, whose diagnosis must not tell the solution.
        is_gradient: False if the result is the output of a forward pass, a mask, a table or a number.
    """

    right: Any
    found: Any
    dy: Any = None
    arrays: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    numbers: list[tuple[float, str]] = field(default_factory=list)
    rtol: float = 1e-9
    is_gradient: bool = True
    operands: dict[str, Any] = field(default_factory=dict)

    @property
    def difference(self) -> Array:
        """The difference found - right."""
        return self.found - self.right

    @property
    def wrong(self) -> Array:
        """A bool array, True at the entries that differ."""
        scale = max(np.abs(self.right).max(initial=0), np.abs(self.found).max(initial=0))
        return np.abs(self.difference) > self.rtol * scale

    def same(self, a: Array, b: Array) -> bool:
        """Return whether two arrays agree, relative to their largest entry."""
        return same(a, b, self.rtol)

    def alike(self) -> Iterator[tuple[str, Array]]:
        """Yield pairs (name, array) of the arrays of the size of the result, reshaped to its shape."""
        for name, array in self.arrays.items():
            if array.dtype.kind == "f" and array.size == self.right.size and array.size > 1:
                yield name, array.reshape(self.right.shape)


def same(a: Array, b: Array, rtol: float) -> bool:
    """Return whether two arrays agree, relative to their largest entry.

    Args:
        a, b: Arrays of the same shape.
        rtol: The largest difference that passes, divided by the largest entry.
    """
    scale = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    return bool(np.abs(a - b).max(initial=0) <= rtol * scale)
