"""The steps of feed-forward networks, gated or not, and of the head of BERT."""

from __future__ import annotations

from typing import Any

from npformer.explorer.call_tree import Call
from npformer.explorer.steps.activation import inner_of, record_activation
from npformer.explorer.steps.recording import Recording, emits
from npformer.models.bert import BertHead
from npformer.nn import FeedForward, GatedFeedForward

_GATED = {"swiglu": "swish", "geglu": "gelu", "geglu_tanh": "gelu_tanh"}  # the activation of the gate


@emits(FeedForward)
def _emit_feed_forward(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    inner, outer = call.part(module.inner), call.part(module.outer)
    recording.emit(inner)
    at, x = f"{path}.hidden", recording.step_of(inner.output)
    gate = inner_of(module.activation, call.cache.hidden)
    step = record_activation(recording, at, module.activation, x, gate, (outer.inputs[0], outer.d_inputs))
    recording.alias(f"{at}.y", step)
    recording.emit(outer)


@emits(GatedFeedForward)
def _emit_gated_feed_forward(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    gate, value, outer = (call.part(m) for m in (module.gate, module.value, module.outer))
    recording.emit(gate)
    gated, dh = call.cache.gated, outer.d_inputs
    x, output = recording.step_of(gate.output), (gated.activated, dh * gated.value)
    name = _GATED[module.activation]
    step = record_activation(recording, f"{path}.gated", name, x, gated.activation[1], output)
    recording.emit(value)
    inputs = [recording.step_of(value.output), step]
    note = {"shift": 0.0, "factor": 1.0}
    recording.record("gate", f"{path}.hidden.y", outer.inputs[0], dh, inputs, note, "gated")
    recording.emit(outer)


@emits(BertHead)
def _emit_bert_head(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    dense, norm, output = (call.part(m) for m in (module.dense, module.norm, module.output))
    recording.emit(dense)
    x, gate = recording.step_of(dense.output), inner_of(module.activation, call.cache.activation)
    record_activation(recording, path, module.activation, x, gate, (norm.inputs[0], norm.d_inputs))
    recording.emit(norm)
    recording.emit(output)
