"""The steps of residual connections: the sum of a sublayer's input and output, and the norm after it.

A sum belongs to no layer of its own. Its path has the number of its norm: the sum of "encoder.0.norm2" or
"encoder.0.postprocess2" is "encoder.0.add2.sum".
"""

from __future__ import annotations

import re
from typing import Any

from npformer.explorer.call_tree import Call
from npformer.explorer.steps.norm import record_layer_norm
from npformer.explorer.steps.recording import Recording, emits
from npformer.models.gpt import Block
from npformer.models.transformer import PreNormDecoderLayer, PreNormEncoderLayer
from npformer.models.transformer.sequences import Postprocess
from npformer.nn import AddNorm, Dropout


@emits(AddNorm)
def _emit_add_norm(recording: Recording, call: Call, path: str) -> None:
    """Add the steps of y = norm(x + dropout(h))."""
    x, h, *_ = call.inputs
    terms, total = [recording.step_of(x), recording.step_of(h)], x + h
    recording.record("add", _sum_of(path), total, call.d_inputs[0], terms, line="residual")
    record_layer_norm(recording, path, total, call, call.cache.norm, call.module)


@emits(PreNormEncoderLayer, PreNormDecoderLayer, Block)
def _emit_pre_norm_layer(recording: Recording, call: Call, path: str) -> None:
    """Add the steps of a layer whose sublayers compute x = x + dropout(f(norm(x))): norm, f, dropout, sum."""
    sublayers = [call.children[start : start + 3] for start in range(0, len(call.children), 3)]
    # the sums, and their gradients: x = x + h, so the gradient of x is that of the sum and that of the norm
    sums = [*(norm.inputs[0] for norm, *_ in sublayers[1:]), call.output]
    dsums = [call.d_output]
    for norm, *_ in reversed(sublayers[1:]):
        dsums.insert(0, dsums[0] + norm.d_inputs)
    for (norm, sublayer, dropout), total, dtotal in zip(sublayers, sums, dsums, strict=True):
        assert isinstance(dropout.module, Dropout)
        recording.emit(norm)
        recording.emit(sublayer)
        terms = [recording.step_of(norm.inputs[0]), recording.step_of(dropout.output)]
        recording.record("add", _sum_of(f"{path}.{_name(norm)}"), total, dtotal, terms, line="residual")


@emits(Postprocess)
def _emit_postprocess(recording: Recording, call: Call, path: str) -> None:
    """Add the steps of the letters after a sublayer, such as "dan"."""
    module: Any = call.module
    x, h, *_ = call.inputs
    norm = call.child(module.norm)
    for index, letter in enumerate(module.letters):
        if letter == "a":
            total, grad = call.output, call.d_output
            if norm is not None and "n" in module.letters[index:]:
                total, grad = norm.inputs[0], norm.d_inputs
            terms = [recording.step_of(x), recording.step_of(h)]
            recording.record("add", _sum_of(path), total, grad, terms, line="residual")
            h = total
        elif letter == "n" and norm is not None:
            recording.emit(norm)
            h = norm.output


def _name(call: Call) -> str:
    """Return the name of a layer in the layer that holds it."""
    return call.path.rpartition(".")[2]


def _sum_of(path: str) -> str:
    """Return the path of the sum to which a norm belongs, or the letters after a sublayer."""
    return re.sub(r"(norm|postprocess)(\d?)$", r"add\2", path) + ".sum" if path else "sum"
