"""Layers of position vectors: a learned table and a table of sinusoids."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.positions import sinusoids
from npformer.nn.checks import check_length
from npformer.nn.init import default_rng, normal
from npformer.nn.module import Module, Parameter


class LearnedPositions(Module):
    """A table with a learned vector for each position. Shapes: length T -> y (T, D).

    Args:
        max_length: The number of positions.
        d_model: The width D of the vectors.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        max_length: int,
        d_model: int,
        *,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.weight = Parameter(normal(default_rng(rng), (max_length, d_model), d_model**-0.5, dtype))

    def forward(self, length: int, start: int = 0) -> tuple[Array, Any]:
        """Return y, the vectors (T, D) of the positions start .. start + length - 1, and the cache."""
        check_length(start + length, len(self.weight.value), "LearnedPositions")
        return self.weight.value[start : start + length], (start, length)

    def backward(self, dy: Array, cache: Any) -> None:
        """Accumulate the gradient of the table. Shapes: dy (B, T, D), the gradients in all B sentences."""
        start, length = cache
        # y = weight[start : start + length] was added to every sentence, so the B gradients are summed
        self.weight.accumulate(dy.sum(0), at=slice(start, start + length))


class FixedPositions(Module):
    """A table of sinusoids, which is not learned. Shapes: length T -> y (T, D).

    Args:
        max_length: The number of positions.
        d_model: The width D of the vectors.
        layout: "interleaved", "halves" or "jianshu"; see functional.positions.
        dtype: The dtype of the table.

    Source: Vaswani et al. 2017, section 3.5.
    """

    def __init__(
        self, max_length: int, d_model: int, *, layout: str = "interleaved", dtype: Any = np.float32
    ) -> None:
        self.table = sinusoids(max_length, d_model, layout).astype(dtype)

    def forward(self, length: int, start: int = 0) -> tuple[Array, Any]:
        """Return y, the vectors (T, D) of the positions start .. start + length - 1, and the cache."""
        check_length(start + length, len(self.table), "FixedPositions")
        return self.table[start : start + length], None

    def backward(self, dy: Array, cache: Any) -> None:
        """Do nothing, since the table is not learned."""
