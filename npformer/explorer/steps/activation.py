"""The steps of an activation: a function of each entry, and its product with the input."""

from __future__ import annotations

from npformer.backend import Array
from npformer.explorer.steps.recording import RecordedStep, Recording
from npformer.functional.residual import ActivationDropoutCache, ReluDropoutCache

# the inner function of each activation y = x (inner + shift) factor, by the name of the activation
GATES: dict[str, tuple[str, str, float, float]] = {
    "gelu": ("gelu", "normal_cdf", 0.0, 1.0),
    "gelu_tanh": ("gelu_tanh", "tanh", 1.0, 0.5),
    "swish": ("silu", "sigmoid", 0.0, 1.0),
}


def inner_of(name: str, cache: ActivationDropoutCache | ReluDropoutCache) -> Array | None:
    """Return the inner function of an activation, such as Phi(x) of gelu: cache is of activation_dropout."""
    return cache.activation[1] if isinstance(cache, ActivationDropoutCache) and name in GATES else None


def record_activation(
    recording: Recording,
    at: str,
    name: str,
    x: RecordedStep | None,
    inner: Array | None,
    output: tuple[Array, Array],
) -> RecordedStep:
    """Add the steps of an activation, and return that of its output.

    Args:
        recording: The recording.
        at: The beginning of the paths.
        name: The name of the activation.
        x: The step of the input.
        inner: The inner function of an activation y = x (inner + shift) factor, else None.
        output: The output and its gradient.
    """
    assert x is not None
    y, dy = output
    if name == "none":
        return recording.alias(f"{at}.activated", x)
    if inner is None:
        return recording.record("scalar", f"{at}.activated", y, dy, [x], {"name": name}, name)
    line, inner_name, shift, factor = GATES[name]
    dinner = dy * x.data[None] * factor
    note = {"name": inner_name}
    gate = recording.record("scalar", f"{at}.activation.1", inner, dinner, [x], note, inner_name)
    note_of_gate = {"shift": shift, "factor": factor}
    return recording.record("gate", f"{at}.activated", y, dy, [x, gate], note_of_gate, line)
