"""Dropout, alone and after an activation.

The ReLU and dropout have one kernel together. Any other activation is its own kernel, if it has one, or the
plain function, followed by the kernel of dropout.
"""

from typing import Any

from npformer import functional as plain
from npformer.backend import Array, Generator
from npformer.functional import activations, residual
from npformer.functional.residual import ActivationDropoutCache
from npformer.kernels import cpu, gpu
from npformer.kernels.choice import choose, choose_by_cache

dropout = choose(plain.dropout, cpu.dropout, gpu.dropout)
dropout_backward = choose_by_cache(plain.dropout_backward)

relu_dropout = choose(residual.relu_dropout, cpu.relu_dropout, gpu.relu_dropout)
relu_dropout_backward = choose_by_cache(residual.relu_dropout_backward)

gelu = choose(activations.gelu, cpu.gelu, gpu.gelu)
gelu_backward = choose_by_cache(activations.gelu_backward)

gelu_tanh = choose(activations.gelu_tanh, cpu.gelu_tanh, gpu.gelu_tanh)
gelu_tanh_backward = choose_by_cache(activations.gelu_tanh_backward)

ACTIVATIONS = activations.ACTIVATIONS | {
    "gelu": (gelu, gelu_backward),
    "gelu_tanh": (gelu_tanh, gelu_tanh_backward),
}


def activation_dropout(
    x: Array, activation: str = "relu", p: float = 0.0, rng: Generator | None = None
) -> tuple[Array, Any]:
    """Compute y = dropout(f(x)), as npformer.functional.activation_dropout does.

    Args:
        x: The input, of shape (..., F).
        activation: The name of the activation f.
        p: The dropout probability.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of shape (..., F), and the cache.
    """
    if activation == "relu":
        return relu_dropout(x, p, rng)
    activate, _ = ACTIVATIONS[activation]
    h, activated = activate(x)
    y, dropout_mask = dropout(h, p, rng)
    return y, ActivationDropoutCache(activation, activated, dropout_mask)


def activation_dropout_backward(dy: Array, cache: Any) -> Array:
    """Return dx, of shape (..., F), the gradient of y = dropout(f(x))."""
    if not isinstance(cache, ActivationDropoutCache):
        return relu_dropout_backward(dy, cache)
    _, activate_backward = ACTIVATIONS[cache.name]
    # y = dropout(h)
    dh = dropout_backward(dy, cache.dropout_mask)
    # h = f(x)
    return activate_backward(dh, cache.activation)
