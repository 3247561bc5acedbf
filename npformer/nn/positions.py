"""Layers of positions: a learned table, a table of sinusoids, and the rotation of queries and keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array, like
from npformer.functional.positions import sinusoids
from npformer.functional.rotary import ROTARY_LAYOUTS, rotary_table, rotate, rotate_backward
from npformer.nn.checks import check_floats, check_length
from npformer.nn.init import default_rng, normal
from npformer.nn.module import Module, Parameter
from npformer.storage.validation import require_choice


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


class RotaryPositions(Module):
    """The rotation of queries and keys by angles that grow with their positions. Nothing is learned.

    All layers of a model can share one such object, which holds the tables of cosines and sines.
    Shapes: x (B, H, T, K) -> y (B, H, T, K).

    Args:
        max_length: The number of positions.
        d_head: The width K of a head, an even number.
        base: The base of the angles.
        layout: The pairs of numbers that are rotated: "halves" or "interleaved"; see functional.rotary.
        dtype: The dtype of the tables.

    Raises:
        UserError: If a setting is impossible, or if a position is outside the tables.

    Source: Su et al. 2021, section 3.2.2.
    """

    def __init__(
        self,
        max_length: int,
        d_head: int,
        *,
        base: float = 10000.0,
        layout: str = "halves",
        dtype: Any = np.float32,
    ) -> None:
        require_choice("layout", layout, ROTARY_LAYOUTS)
        self.layout = layout
        cos, sin = rotary_table(np.arange(max_length), d_head, base)
        self.cos, self.sin = cos.astype(dtype), sin.astype(dtype)  # (max_length, K/2)

    def forward(self, x: Array, start: int | Array = 0) -> tuple[Array, Any]:
        """Rotate queries or keys.

        Args:
            x: Queries or keys, of shape (B, H, T, K).
            start: The position of the first of the T vectors: one number for all sentences, or an array (B,)
                on the host with one number for each sentence.

        Returns:
            y, of shape (B, H, T, K), and the cache.
        """
        check_floats(x, ("B", "H", "T", 2 * self.cos.shape[1]), "RotaryPositions")
        length, first = x.shape[2], np.asarray(start)
        check_length(int(first.max()) + length, len(self.cos), "RotaryPositions")
        rows: Any = slice(start, start + length)
        if first.ndim:  # a row of positions for each sentence, the same for all heads
            rows = like(first[:, None, None] + np.arange(length), self.cos)  # (B, 1, T)
        return rotate(x, self.cos[rows], self.sin[rows], self.layout)

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of shape (B, H, T, K)."""
        return rotate_backward(dy, cache)
