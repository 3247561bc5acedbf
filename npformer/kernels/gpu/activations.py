"""GELU, its approximation, and SwiGLU: one GPU kernel forward, one backward.

The caches hold the inputs only. The backward passes compute the functions again, which takes less time than
to write them to memory in the forward pass and to read them back.
"""

import math
from typing import Any, NamedTuple

from npformer.backend import Array, erf, fused
from npformer.functional.activations import TANH_SCALE
from npformer.functional.caches import cache_class
from npformer.kernels.choice import backward_of


@cache_class
class GeluCache(NamedTuple):
    """The cache of gelu."""

    x: Array  # (...)


@cache_class
class GeluTanhCache(NamedTuple):
    """The cache of gelu_tanh."""

    x: Array  # (...)


@cache_class
class SwigluCache(NamedTuple):
    """The cache of swiglu."""

    gate: Array  # (..., F)
    value: Array  # (..., F)


def _normal_cdf(xp: Any, x: Array) -> Array:
    """Compute Phi(x) = (1 + erf(x / sqrt(2))) / 2 inside a kernel."""
    return (1 + erf(x * math.sqrt(0.5), xp)) * 0.5


def _inner_tanh(xp: Any, x: Array) -> Array:
    """Compute t = tanh(sqrt(2/pi) (x + 0.044715 x³)) inside a kernel."""
    return xp.tanh(TANH_SCALE * (x + 0.044715 * x * x * x))


def _sigmoid(xp: Any, x: Array) -> Array:
    """Compute 1 / (1 + exp(-x)) inside a kernel, as the plain pair does."""
    return (1 + xp.tanh(x * 0.5)) * 0.5


@fused
def gelu_value(xp: Any, x: Array) -> Array:
    """Return y = x Phi(x), of the shape of x."""
    return x * _normal_cdf(xp, x)


@fused
def gelu_gradient(xp: Any, dy: Array, x: Array) -> Array:
    """Return dx = dy (Phi(x) + x Phi'(x)), of the shape of x.

    Args:
        xp: The array module.
        dy, x: The gradient of y, and the input, of shape (...).
    """
    density = xp.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return dy * (_normal_cdf(xp, x) + x * density)


@fused
def gelu_tanh_value(xp: Any, x: Array) -> Array:
    """Return y = x (1 + t) / 2, of the shape of x."""
    return x * (1 + _inner_tanh(xp, x)) * 0.5


@fused
def gelu_tanh_gradient(xp: Any, dy: Array, x: Array) -> Array:
    """Return dx = dy ((1 + t) + x (1 - t²) inner') / 2, of the shape of x.

    Args:
        xp: The array module.
        dy, x: The gradient of y, and the input, of shape (...).
    """
    t = _inner_tanh(xp, x)
    inner_slope = TANH_SCALE * (1 + 3 * 0.044715 * x * x)
    return dy * ((1 + t) + x * (1 - t * t) * inner_slope) * 0.5


@fused
def swiglu_value(xp: Any, gate: Array, value: Array) -> Array:
    """Return y = swish(gate) value, of shape (..., F).

    Args:
        xp: The array module.
        gate, value: The two inputs, of shape (..., F).
    """
    return gate * _sigmoid(xp, gate) * value


@fused
def swiglu_gradient(xp: Any, dy: Array, gate: Array, value: Array) -> tuple[Array, Array]:
    """Return (dgate, dvalue), of shape (..., F).

    Args:
        xp: The array module.
        dy: The gradient of y, of shape (..., F).
        gate, value: The two inputs, of shape (..., F).
    """
    s = _sigmoid(xp, gate)
    activated = gate * s
    return dy * value * (s + activated * (1 - s)), dy * activated


def gelu(x: Array) -> tuple[Array, GeluCache]:
    """Compute y = x Phi(x), as npformer.functional.gelu does.

    Args:
        x: The input, of shape (...).

    Returns:
        y, of the shape of x, and the cache.
    """
    return gelu_value(x), GeluCache(x)


@backward_of(GeluCache)
def gelu_backward(dy: Array, cache: GeluCache) -> Array:
    """Return dx = dy (Phi(x) + x Phi'(x)), of the shape of dy."""
    return gelu_gradient(dy, cache.x)


def gelu_tanh(x: Array) -> tuple[Array, GeluTanhCache]:
    """Compute y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))) / 2, as npformer.functional.gelu_tanh does.

    Args:
        x: The input, of shape (...).

    Returns:
        y, of the shape of x, and the cache.
    """
    return gelu_tanh_value(x), GeluTanhCache(x)


@backward_of(GeluTanhCache)
def gelu_tanh_backward(dy: Array, cache: GeluTanhCache) -> Array:
    """Return dx = dy ((1 + t) + x (1 - t²) inner') / 2, of the shape of dy."""
    return gelu_tanh_gradient(dy, cache.x)


def swiglu(gate: Array, value: Array) -> tuple[Array, SwigluCache]:
    """Compute y = swish(gate) value, as npformer.functional.swiglu does.

    Args:
        gate, value: The two inputs, of shape (..., F).

    Returns:
        y, of shape (..., F), and the cache.
    """
    return swiglu_value(gate, value), SwigluCache(gate, value)


@backward_of(SwigluCache)
def swiglu_backward(dy: Array, cache: SwigluCache) -> tuple[Array, Array]:
    """Return the gradients dgate and dvalue (..., F) of y = swish(gate) value."""
    return swiglu_gradient(dy, *cache)
