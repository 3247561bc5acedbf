"""Layers of positions: a learned table, a table of sinusoids, and the rotation of queries and keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array, like
from npformer.errors import UserError
from npformer.functional.positions import sinusoids
from npformer.functional.rotary import ROTARY_LAYOUTS, Llama3Scaling, RotaryCache, rotary_table
from npformer.kernels import rotate, rotate_backward
from npformer.nn.checks import check_floats, check_gradient, check_length
from npformer.nn.init import default_rng, normal
from npformer.nn.module import Module, Parameter
from npformer.validation import require_choice, require_counts


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
        require_counts(max_length=max_length, d_model=d_model)
        self.weight = Parameter(normal(default_rng(rng), (max_length, d_model), d_model**-0.5, dtype))

    def forward(self, length: int, start: int | Array = 0) -> tuple[Array, tuple[int | Array, int]]:
        """Return the vectors of the positions start .. start + length - 1.

        Args:
            length: The number T of positions.
            start: The first position: one number for all sentences, or, for decoding, which has no backward
                pass, an array (B,) on the host with one number for each sentence.

        Returns:
            y, of shape (T, D), or (B, T, D) if start is an array, and the cache.
        """
        return _rows(self.weight.value, length, start, "LearnedPositions"), (start, length)

    def backward(self, dy: Array, cache: tuple[int | Array, int]) -> None:
        """Accumulate the gradient of the table. Shapes: dy (B, T, D), the gradients in all B sentences."""
        start, length = cache
        batch, width = getattr(dy, "shape", ())[:1], self.weight.value.shape[1]
        check_gradient(dy, (*batch, length, width), "LearnedPositions")
        # y = weight[start : start + length] was added to every sentence, so the B gradients are summed
        total = dy.sum(0, dtype=np.promote_types(dy.dtype, np.float32))  # float16 is added in float32
        self.weight.accumulate(total.astype(dy.dtype, copy=False), at=slice(start, start + length))


class FixedPositions(Module):
    """A table of sinusoids, which is not learned. Shapes: length T -> y (T, D).

    Args:
        max_length: The number of positions.
        d_model: The width D of the vectors.
        layout: One of the layouts of functional.positions.
        dtype: The dtype of the table.

    Source: Vaswani et al. 2017, section 3.5.
    """

    def __init__(
        self, max_length: int, d_model: int, *, layout: str = "interleaved", dtype: Any = np.float32
    ) -> None:
        require_counts(max_length=max_length, d_model=d_model)
        self.table = sinusoids(max_length, d_model, layout).astype(dtype)

    def forward(self, length: int, start: int | Array = 0) -> tuple[Array, None]:
        """Return the vectors of the positions start .. start + length - 1, as LearnedPositions does."""
        return _rows(self.table, length, start, "FixedPositions"), None

    def backward(self, dy: Array, cache: None) -> None:
        """Do nothing, since the table is not learned. Shapes: dy (B, T, D)."""


class RotaryPositions(Module):
    """The rotation of queries and keys by angles that grow with their positions. Nothing is learned.

    All layers of a model can share one such object, which holds the tables of cosines and sines.
    Shapes: x (B, H, T, K) -> y (B, H, T, K).

    Args:
        max_length: The number of positions.
        d_head: The width K of a head, an even number.
        base: The base of the angles.
        layout: The pairs of numbers that are rotated: "halves" or "interleaved"; see functional.rotary.
        scaling: The change of the angles for a longer context, or None.
        rotated: The number R of columns of a head that are rotated, the first ones. The default is all.
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
        scaling: Llama3Scaling | None = None,
        rotated: int | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_choice("layout", layout, ROTARY_LAYOUTS)
        rotated = d_head if rotated is None else rotated
        require_counts(max_length=max_length, d_head=d_head, rotated=rotated)
        if rotated > d_head:
            raise UserError(f"rotated is {rotated}, and a head has {d_head} columns: make it smaller")
        self.layout, self.d_head = layout, d_head
        cos, sin = rotary_table(np.arange(max_length), rotated, base, scaling)
        self.cos, self.sin = cos.astype(dtype), sin.astype(dtype)  # (max_length, R/2)

    def forward(self, x: Array, start: int | Array = 0) -> tuple[Array, RotaryCache]:
        """Rotate queries or keys.

        Args:
            x: Queries or keys, of shape (B, H, T, K).
            start: The position of the first of the T vectors: one number for all sentences, or an array (B,)
                on the host with one number for each sentence.

        Returns:
            y, of shape (B, H, T, K), and the cache.
        """
        check_floats(x, ("B", "H", "T", self.d_head), "RotaryPositions")
        cos, sin = (
            _rows(table, x.shape[2], start, "RotaryPositions")  # (T, K/2), or (B, T, K/2)
            for table in (self.cos, self.sin)
        )
        if cos.ndim > 2:  # the same positions for all heads
            cos, sin = cos[:, None], sin[:, None]  # (B, 1, T, K/2)
        return rotate(x, cos, sin, self.layout)

    def backward(self, dy: Array, cache: RotaryCache) -> Array:
        """Return dx, of shape (B, H, T, K)."""
        check_gradient(dy, ("B", "H", cache.cos.shape[-2], self.d_head), "RotaryPositions")
        return rotate_backward(dy, cache)


def _rows(table: Array, length: int, start: int | Array, layer: str) -> Array:
    """Return the rows of the positions start .. start + length - 1 of a table.

    Args:
        table: The table, with a row for each position.
        length: The number T of positions.
        start: The first position, or an array (B,) on the host with the first position of each sentence.
        layer: The name of the layer, for the error message.

    Returns:
        A view of shape (T, ...), or a copy of shape (B, T, ...) if start is an array.
    """
    check_length(int(np.max(start)) + length, len(table), layer)
    if isinstance(start, int):
        return table[start : start + length]
    return table[like(start[:, None] + np.arange(length), table)]
