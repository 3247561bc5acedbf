"""The steps of layer norm and RMS norm."""

from __future__ import annotations

from typing import Any

from npformer.backend import Array
from npformer.explorer.call_tree import Call
from npformer.explorer.steps.recording import Recording, emits
from npformer.functional.norm import LayerNormCache
from npformer.nn import LayerNorm, RMSNorm


@emits(LayerNorm)
def _emit_layer_norm(recording: Recording, call: Call, path: str) -> None:
    record_layer_norm(recording, path, call.inputs[0], call, call.cache, call.module)


def record_layer_norm(
    recording: Recording, path: str, x: Array, call: Call, cache: LayerNormCache, layer: Any
) -> None:
    """Add the steps of a layer norm.

    Args:
        recording: The recording.
        path: The path of the norm.
        x: The input of the norm, (1, T, D), which is a step.
        call: The call that returned the output of the norm.
        cache: The cache of layer_norm.
        layer: The LayerNorm.
    """
    step, dxhat = recording.step_of(x), call.d_output * layer.gain.value  # y = gain xhat + bias
    mean = x.mean(-1, keepdims=True)  # (1, T, 1)
    # xhat = (x - mean) rstd; the gradient that rstd sends to the mean is 0, as the sum of x - mean is
    drstd = (dxhat * (x - mean)).sum(-1, keepdims=True)
    dmean = -(dxhat * cache.rstd).sum(-1, keepdims=True)
    variance = 1 / cache.rstd**2 - layer.eps
    key = "layer_norm_statistics"
    means = recording.record("mean", f"{path}.mean", mean, dmean, [step], line=key)
    note = {"eps": layer.eps, "variance": variance.reshape(-1).tolist()}
    deviations = recording.record("rstd", f"{path}.rstd", cache.rstd, drstd, [step, means], note, key)
    inputs = [step, means, deviations]
    xhat = recording.record(
        "normalize", f"{path}.xhat", cache.xhat, dxhat, inputs, line="layer_norm_normalize"
    )
    scaled, key = [xhat, recording.parameter(layer.gain)], "layer_norm_gain"
    if layer.bias is not None:
        scaled, key = [*scaled, recording.parameter(layer.bias)], "layer_norm_scale"
    recording.record("scale_and_shift", f"{path}.y", call.output, call.d_output, scaled, line=key)


@emits(RMSNorm)
def _emit_rms_norm(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    x, cache = recording.step_of(call.inputs[0]), call.cache
    dxhat = call.d_output * module.gain.value
    drrms = (dxhat * call.inputs[0]).sum(-1, keepdims=True)  # xhat = x rrms
    note = {"eps": module.eps}
    rrms = recording.record("rrms", f"{path}.rrms", cache.rrms, drrms, [x], note, "rms_norm")
    xhat = recording.record("scale_rows", f"{path}.xhat", cache.xhat, dxhat, [x, rrms], line="rms_norm")
    scaled = [xhat, recording.parameter(module.gain)]
    recording.record(
        "scale_and_shift", f"{path}.y", call.output, call.d_output, scaled, line="rms_norm_scale"
    )
