"""Gated activations, Shazeer 2020: one linear map of the input is multiplied by an activation of another one.

The gate decides for each input which numbers of `value` pass, and how much of them.
"""

from typing import Any, NamedTuple

from npformer.backend import Array
from npformer.functional.activations import (
    gelu,
    gelu_backward,
    gelu_tanh,
    gelu_tanh_backward,
    swish,
    swish_backward,
)
from npformer.functional.caches import cache_class


@cache_class
class GatedCache(NamedTuple):
    """The cache of swiglu, geglu and geglu_tanh."""

    value: Array  # (..., F)
    activated: Array  # (..., F) f(gate)
    activation: Any  # the cache of f


def swiglu(gate: Array, value: Array) -> tuple[Array, GatedCache]:
    """Compute y = swish(gate) value.

    Shapes: gate, value (..., F) -> y (..., F), and the cache.

    Source: Shazeer 2020, equation 5.
    """
    activated, activation = swish(gate)  # (..., F)
    return activated * value, GatedCache(value, activated, activation)


def swiglu_backward(dy: Array, cache: GatedCache) -> tuple[Array, Array]:
    """Return the gradients dgate and dvalue (..., F) of y = swish(gate) value: the product rule."""
    # y = activated value
    dactivated, dvalue = dy * cache.value, dy * cache.activated  # (..., F)
    # activated = swish(gate)
    return swish_backward(dactivated, cache.activation), dvalue


def geglu(gate: Array, value: Array) -> tuple[Array, GatedCache]:
    """Compute y = gelu(gate) value.

    Shapes: gate, value (..., F) -> y (..., F), and the cache.

    Source: Shazeer 2020, equation 5.
    """
    activated, activation = gelu(gate)  # (..., F)
    return activated * value, GatedCache(value, activated, activation)


def geglu_backward(dy: Array, cache: GatedCache) -> tuple[Array, Array]:
    """Return the gradients dgate and dvalue (..., F) of y = gelu(gate) value: the product rule."""
    # y = activated value
    dactivated, dvalue = dy * cache.value, dy * cache.activated  # (..., F)
    # activated = gelu(gate)
    return gelu_backward(dactivated, cache.activation), dvalue


def geglu_tanh(gate: Array, value: Array) -> tuple[Array, GatedCache]:
    """Compute y = gelu_tanh(gate) value, the gate of Gemma.

    Shapes: gate, value (..., F) -> y (..., F), and the cache.

    Source: Gemma team 2024, table 1.
    """
    activated, activation = gelu_tanh(gate)  # (..., F)
    return activated * value, GatedCache(value, activated, activation)


def geglu_tanh_backward(dy: Array, cache: GatedCache) -> tuple[Array, Array]:
    """Return the gradients dgate and dvalue (..., F) of y = gelu_tanh(gate) value: the product rule."""
    # y = activated value
    dactivated, dvalue = dy * cache.value, dy * cache.activated  # (..., F)
    # activated = gelu_tanh(gate)
    return gelu_tanh_backward(dactivated, cache.activation), dvalue


# the pair of each gated activation, by name
GATED_ACTIVATIONS = {
    "swiglu": (swiglu, swiglu_backward),
    "geglu": (geglu, geglu_backward),
    "geglu_tanh": (geglu_tanh, geglu_tanh_backward),
}
