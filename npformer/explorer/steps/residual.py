"""The steps of residual connections, with the norm before the sublayer, after the sum, or as letters say."""

from __future__ import annotations

from typing import Any

from npformer.explorer.call_tree import Call
from npformer.explorer.steps.norm import record_layer_norm
from npformer.explorer.steps.recording import Recording, emits
from npformer.nn import PostNormResidual, PreNormResidual, SequenceResidual


@emits(PreNormResidual, PostNormResidual)
def _emit_residual(recording: Recording, call: Call, path: str) -> None:
    """Add the steps of a residual connection with the norm before the sublayer or after the sum."""
    module: Any = call.module
    is_post = isinstance(module, PostNormResidual)
    sublayer = next(child for child in call.children if child.module is not module.norm)
    for child in call.children:
        if not (is_post and child.module is module.norm):
            recording.emit(child)
    x, h = recording.step_of(call.inputs[0]), recording.step_of(sublayer.output)
    if not is_post:
        step = recording.record("add", f"{path}.sum", call.output, call.d_output, [x, h], line="residual")
        recording.alias(f"{path}.y", step)
        return
    norm = call.child(module.norm)
    assert norm is not None
    total = call.inputs[0] + sublayer.output
    recording.record("add", f"{path}.sum", total, norm.d_inputs[0], [x, h], line="residual")
    record_layer_norm(recording, f"{path}.norm", total, call, norm.cache.norm, module.norm)
    recording.alias(f"{path}.y", recording.named(f"{path}.norm.y"))


@emits(SequenceResidual)
def _emit_sequence_residual(recording: Recording, call: Call, path: str) -> None:
    """Add the steps of a residual connection whose operations are given as letters, such as "n-dan"."""
    module: Any = call.module
    norm = call.child(module.norm_after)
    for child in call.children:
        if child is not norm:
            recording.emit(child)
            h = child.output  # in the end, the output of the sublayer
    for index, letter in enumerate(module.after):
        if letter == "a":
            total, grad = call.output, call.d_output
            if norm is not None and "n" in module.after[index:]:
                total, grad = norm.inputs[0], norm.d_inputs
            terms = [recording.step_of(call.inputs[0]), recording.step_of(h)]
            recording.record("add", f"{path}.sum", total, grad, terms, line="residual")
            h = total
        elif letter == "n" and norm is not None:
            record_layer_norm(recording, f"{path}.norm", norm.inputs[0], norm, norm.cache, module.norm_after)
            h = norm.output
    last = recording.step_of(h)
    assert last is not None
    recording.alias(f"{path}.y", last)
