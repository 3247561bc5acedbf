"""Scene: a wrong result beside the right one, and what is known around them. The clues look at it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scene:
    """What every clue is given.

    right and found have one shape; dy is the gradient that entered, or None where there is none.
    arrays are the inputs and the cache by name, others the right gradients of the other tensors, numbers
    pairs (number, what it is) that a factor may come from.
    """

    right: Any
    found: Any
    dy: Any = None
    arrays: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    numbers: list[tuple[float, str]] = field(default_factory=list)
    loose: float = 1e-9

    @property
    def difference(self):
        """found - right."""
        return self.found - self.right

    @property
    def wrong(self):
        """Which entries differ."""
        scale = max(np.abs(self.right).max(initial=0), np.abs(self.found).max(initial=0))
        return np.abs(self.difference) > self.loose * scale

    def same(self, a, b):
        """Whether two arrays agree, relative to their largest entry."""
        return same(a, b, self.loose)

    def alike(self):
        """Pairs (name, array) of the arrays with as many numbers as the result, in its shape."""
        for name, array in self.arrays.items():
            if array.dtype.kind == "f" and array.size == self.right.size and array.size > 1:
                yield name, array.reshape(self.right.shape)


def same(a, b, loose):
    """Whether two arrays agree to `loose`, relative to their largest entry."""
    scale = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    return bool(np.abs(a - b).max(initial=0) <= loose * scale)
