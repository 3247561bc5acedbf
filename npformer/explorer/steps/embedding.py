"""The steps of embeddings: the vectors of tokens, positions and segments, and their sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.explorer.call_tree import Call
from npformer.explorer.steps.recording import RecordedStep, Recording, emits
from npformer.models.bert import BertEmbedding
from npformer.nn import Embedding, FixedPositions, InputEmbedding
from npformer.nn.dropout import Dropout
from npformer.nn.module import Module
from npformer.nn.positions import LearnedPositions


@emits(Dropout, FixedPositions, LearnedPositions)
def _emit_nothing(recording: Recording, call: Call, path: str) -> None:
    """Add nothing: without training, dropout is the identity, and positions belong to the embedding."""


@emits(Embedding)
def _emit_embedding(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    ids = call.cache.ids[0]
    if id(module.weight) in recording.parts:
        ids = np.searchsorted(recording.parts[id(module.weight)].ids, ids)
    zero_id = None if module.zero_id is None else int(module.zero_id)
    note = {"ids": ids.tolist(), "scale": module.scale, "zeroId": zero_id}
    table = recording.parameter(module.weight)
    if table is not None:
        recording.alias(f"{path}.table", table)
    recording.record("embed", f"{path}.y", call.output, call.d_output, [table], note)


@emits(InputEmbedding)
def _emit_input_embedding(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    recording.emit(call.part(module.tokens))
    step = recording.named(f"{path}.tokens.y")
    if module.positions is not None:
        inputs = [step, _positions(recording, module.positions, call.output.shape[1], path)]
        dy = call.d_output
        step = recording.record("add", f"{path}.sum", call.output, dy, inputs, line="add_positions")
    recording.alias(f"{path}.y", step)


def _positions(recording: Recording, module: Module, length: int, path: str) -> RecordedStep | None:
    """Return the step of a table of positions, whose first rows the page carries."""
    if isinstance(module, FixedPositions):
        return recording.record("constant", f"{path}.positions.table", module.table[:length], None)
    assert isinstance(module, LearnedPositions)
    return recording.parameter(module.weight)


@emits(BertEmbedding)
def _emit_bert_embedding(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    tokens, norm, segments = call.part(module.tokens), call.part(module.norm), call.child(module.segments)
    recording.emit(tokens)
    x, dx = tokens.output, norm.d_inputs  # a sum passes its gradient to all terms
    positions: RecordedStep | None
    if isinstance(module.positions, Embedding):  # RoBERTa, which counts positions from that of padding
        looked_up = call.part(module.positions)
        recording.emit(looked_up)
        positions, vectors = recording.named(f"{path}.positions.y"), looked_up.output
    else:
        positions = _positions(recording, module.positions, x.shape[1], path)
        vectors = module.positions.weight.value[: x.shape[1]]
    x = norm.inputs[0] if segments is None else x + vectors
    inputs: list[RecordedStep | None] = [recording.named(f"{path}.tokens.y"), positions]
    step = recording.record("add", f"{path}.with_positions", x, dx, inputs, line="add_positions")
    if segments is not None:
        recording.emit(segments)
        terms: list[RecordedStep | None] = [step, recording.named(f"{path}.segments.y")]
        recording.record("add", f"{path}.sum", norm.inputs[0], dx, terms, line="add_positions")
    recording.emit(norm)
