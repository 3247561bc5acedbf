"""The steps of the heads of attention: their projections, the rotation by positions, and shared heads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.explorer.call_tree import Call
from npformer.explorer.steps.activation import GATES, record_activation
from npformer.explorer.steps.recording import RecordedStep, Recording, emits, path_of
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.heads import merge_heads, repeat_heads, repeat_heads_backward, split_heads
from npformer.functional.rotary import RotaryCache, rotate, rotate_backward
from npformer.nn import RotaryPositions


def record_heads(
    recording: Recording, call: Call, path: str, gradients: tuple[Array, Array, Array]
) -> list[RecordedStep]:
    """Add the projections and the queries, keys and values of all heads, and return the steps of the three.

    Args:
        recording: The recording.
        call: The call of the attention layer.
        path: Its path.
        gradients: The gradients of the three as attention takes them, of shape (1, H, T, K).
    """
    module: Any = call.module
    rotation = call.cache.rotation
    steps: list[RecordedStep] = []
    for projection in module.projections:
        made = call.part(projection)
        recording.emit(made)
        first = len(steps)
        parts = [
            _HeadsBackward("qkv"[first + i], dy, n_heads, None if first + i == 2 else rotation)
            for i, (dy, n_heads) in enumerate(zip(gradients[first:], projection.n_heads, strict=False))
        ]
        dy = np.concatenate([merge_heads(part.dsplit) for part in parts], -1)  # (1, T, W)
        y, start = _record_projected(recording, projection, made, dy), 0
        for part, width in zip(parts, projection.widths, strict=True):
            x = split_heads(y.data[None][..., start : start + width], part.n_heads)  # (1, G, T, K)
            note = {"kind": "split_heads", "start": start}
            steps.append(part.record(recording, path, x, (y, note)))
            start += width
    return steps


class _HeadsBackward:
    """The gradients of the queries, keys or values of all heads, from those of attention to the projection.

    Args:
        name: "q", "k" or "v".
        dy: The gradient of the heads as attention takes them, of shape (1, H, T, K).
        n_heads: The number G of heads of the projection, which H / G query heads share.
        rotation: The cache of the rotation, or None.
    """

    def __init__(self, name: str, dy: Array, n_heads: int, rotation: RotaryCache | None) -> None:
        self.name, self.n_heads, self.rotation = name, n_heads, rotation
        self.n_repeats = dy.shape[1] // n_heads
        self.dy = dy
        self.dshared = repeat_heads_backward(dy, self.n_repeats)  # (1, G, T, K)
        self.dsplit = self.dshared if rotation is None else rotate_backward(self.dshared, rotation)

    def record(
        self, recording: Recording, path: str, x: Array, source: tuple[RecordedStep, dict[str, Any]]
    ) -> RecordedStep:
        """Add the steps from the projection to attention, and return the last one.

        x, of shape (1, G, T, K), are the heads as the projection gives them, and `source` is the step of the
        projection with the note of the split.
        """
        y, note = source
        paths = self._paths(path)
        step = recording.record("rearrange", next(paths), x, self.dsplit, [y], note, "split_heads")
        if self.rotation is not None:
            x, _ = rotate(x, *self.rotation)
            step = record_rotation(recording, next(paths), step, (x, self.dshared), self.rotation)
        if self.n_repeats > 1:
            x, _ = repeat_heads(x, self.n_repeats)
            note = {"kind": "repeat_heads", "repeats": self.n_repeats}
            step = recording.record("rearrange", next(paths), x, self.dy, [step], note, "repeat_heads")
        return step

    def _paths(self, path: str) -> Iterator[str]:
        """Yield the paths of the steps, the last of which is that of the cache of attention."""
        count = 1 + (self.rotation is not None) + (self.n_repeats > 1)
        yield from [f"{path}.{self.name}", f"{path}.rotated_{self.name}"][: count - 1]
        yield f"{path}.attention.{self.name}"


def record_rotation(
    recording: Recording, path: str, x: RecordedStep, output: tuple[Array, Array], rotation: RotaryCache
) -> RecordedStep:
    """Add the rotation of queries or keys by their positions.

    Args:
        recording: The recording.
        path: The path of the output.
        x: The step of the input, of shape (G, T, K).
        output: The output and its gradient, of shape (1, G, T, K).
        rotation: The cache of rotate.
    """
    cos, sin, layout = rotation
    table = next((step for step in recording.steps if step.path.startswith("positions.table")), None)
    values = np.concatenate([cos, sin], -1)  # (T, K)
    if table is None or not np.array_equal(table.data, values):  # the layers share it
        table = recording.record("constant", "positions.table", values, None, line="rotary_table")
    return recording.record("rotate", path, *output, [x, table], {"layout": layout})


@emits(RotaryPositions)
def _emit_rotary(recording: Recording, call: Call, path: str) -> None:
    """Add the rotation of a layer that is called alone: attention adds those of its queries and keys."""
    x = recording.step_of(call.inputs[0])
    assert x is not None
    record_rotation(recording, f"{path}.y", x, (call.output, call.d_output), call.cache)


def _record_projected(recording: Recording, projection: Any, made: Call, dy: Array) -> RecordedStep:
    """Add the step of a projection after its activation, with its gradient, and return it."""
    name, at = projection.activation, path_of(made.path)
    activate, _ = ACTIVATIONS[name]
    y, cache = activate(made.output)
    inner = cache[1] if name in GATES else None
    return record_activation(recording, at, name, recording.step_of(made.output), inner, (y, dy))
