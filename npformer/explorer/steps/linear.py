"""The steps of linear layers, and of the projection to logits."""

from __future__ import annotations

from typing import Any

from npformer.backend import Array
from npformer.explorer.call_tree import Call
from npformer.explorer.steps.recording import RecordedStep, Recording, emits
from npformer.nn import Linear, TiedProjection
from npformer.nn.module import Parameter


@emits(Linear, TiedProjection)
def _emit_linear(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    if isinstance(module, TiedProjection) or call.path == "output":
        _emit_logits(recording, call, path)
        return
    x, weight = recording.step_of(call.inputs[0]), recording.parameter(module.weight)
    assert x is not None
    recording.alias(f"{path}.x", x)
    _record_linear(recording, path, [x, weight], module.bias, (call.output, call.d_output), "linear")


def _emit_logits(recording: Recording, call: Call, path: str) -> None:
    """Add the steps of the projection to logits, of which a page may carry some columns only."""
    module: Any = call.module
    columns = recording.columns
    y, dy = call.output, call.d_output  # (1, T, V)
    note: dict[str, Any] = {}
    if columns is not None:
        y, dy, note = y[..., columns], dy[..., columns], {"token_ids": columns.tolist(), "isPart": True}
    x, weight = recording.step_of(call.inputs[0]), recording.parameter(module.weight)
    if isinstance(module, TiedProjection) and weight is not None:
        rows, drows = (a.reshape(-1, a.shape[-1]) for a in (call.inputs[0], dy))
        table = recording.shown(module.weight, module.weight.value)  # (V, D)
        weight = recording.record_transposed(f"{path}.weight", table.T, rows.T @ drows, weight)
        weight.note |= {name: each for name, each in note.items() if name == "token_ids"}
    step = _record_linear(recording, path, [x, weight], module.bias, (y, dy), "logits", note)
    recording.link(call.output, step)


def _record_linear(
    recording: Recording,
    path: str,
    inputs: list[RecordedStep | None],
    bias: Parameter | None,
    output: tuple[Array, Array],
    line: str,
    note: dict[str, Any] | None = None,
) -> RecordedStep:
    """Add the product of x and the weight, and the bias, and return the last step.

    `inputs` are the steps of x and of the weight, or None for a weight that the page does not carry, and
    `output` is the output with its gradient. `line` is the key of the source lines of the product, and `note`
    what the page needs to know of the columns of the output.
    """
    y, dy = output
    if bias is None or None in inputs:  # without the weight, there is no arithmetic to show
        return recording.record("linear", f"{path}.y", y, dy, inputs, note, line)
    product = y - recording.shown(bias, bias.value)
    step = recording.record("linear", f"{path}.product", product, dy, inputs, note, line)
    return recording.record("add_bias", f"{path}.y", y, dy, [step, recording.parameter(bias)], note)
