"""GELU, its approximation and SwiGLU with their derivatives, block by block.

NumPy has no error function, so GELU needs another formula.

The distribution function of the normal distribution is computed as Phi(x) = (1 + tanh(x p(x²))) / 2 with a
polynomial p. gelu_tanh has this form too, with the first two coefficients only, and differs from gelu by up
to 5e-4. The seven coefficients here were fitted for |x| < 6.5, where the errors of Phi(x) and of x Phi(x)
stay below 7e-8, far less than those of rounding. For larger |x|, tanh is 1 or -1 in float32.

The forward passes also compute the derivatives, since both need the same function: Phi, tanh or the sigmoid.
The caches hold the derivatives.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional import activations as plain
from npformer.functional import gated
from npformer.functional.activations import TANH_SCALE
from npformer.functional.caches import cache_class
from npformer.functional.gated import GatedCache
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.blocks import blocks
from npformer.kernels.shared import as_rows

# of p, in powers of x²
COEFFICIENTS = (
    *(0.79788449, 0.036333911, -3.2954765e-5, -5.5277939e-5, 3.9731129e-6),
    *(-1.3364684e-7, 1.8093627e-9),
)


@cache_class
class GeluCache(NamedTuple):
    """The cache of gelu."""

    slope: Array  # (...) the derivative of gelu at x


@cache_class
class GeluTanhCache(NamedTuple):
    """The cache of gelu_tanh."""

    slope: Array  # (...) the derivative of gelu_tanh at x


@cache_class
class SwigluCache(NamedTuple):
    """The cache of swiglu."""

    value: Array  # (..., F)
    activated: Array  # (..., F) swish(gate)
    slope: Array  # (..., F) the derivative of swish at the gate


def gelu(x: Array) -> tuple[Array, GeluCache | tuple[Array, Array]]:
    """Compute y = x Phi(x) in float32, as npformer.functional.gelu does. In float64, call the plain pair.

    Args:
        x: The input, of shape (...).

    Returns:
        y, of the shape of x, and the cache.
    """
    if x.dtype != np.float32:
        return plain.gelu(x)
    y, slope = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    with np.errstate(over="ignore"):  # x¹³ overflows to infinity, where tanh is 1
        _for_blocks(_gelu_and_slope, x, y, slope)
    return y, GeluCache(slope)


@backward_of(GeluCache)
def gelu_backward(dy: Array, cache: GeluCache) -> Array:
    """Return dx = dy (Phi(x) + x Phi'(x)), of the shape of dy."""
    return dy * cache.slope


def gelu_tanh(x: Array) -> tuple[Array, GeluTanhCache]:
    """Compute y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))) / 2, as npformer.functional.gelu_tanh does.

    Args:
        x: The input, of shape (...).

    Returns:
        y, of the shape of x, and the cache.
    """
    y, slope = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    _for_blocks(_gelu_tanh_and_slope, x, y, slope)
    return y, GeluTanhCache(slope)


@backward_of(GeluTanhCache)
def gelu_tanh_backward(dy: Array, cache: GeluTanhCache) -> Array:
    """Return dx = dy ((1 + t) + x (1 - t²) inner') / 2, of the shape of dy."""
    return dy * cache.slope


def swiglu(gate: Array, value: Array) -> tuple[Array, SwigluCache | GatedCache]:
    """Compute y = swish(gate) value, as npformer.functional.swiglu does.

    Args:
        gate, value: The two inputs, of shape (..., F). Arrays that broadcast take the plain pair.

    Returns:
        y, of shape (..., F), and the cache.
    """
    if gate.shape != value.shape:
        return gated.swiglu(gate, value)
    y, activated, slope = (np.empty(gate.shape, gate.dtype) for _ in range(3))
    _for_blocks(_swiglu_and_slope, gate, value, y, activated, slope)
    return y, SwigluCache(value, activated, slope)


@backward_of(SwigluCache)
def swiglu_backward(dy: Array, cache: SwigluCache) -> tuple[Array, Array]:
    """Return the gradients dgate and dvalue (..., F) of y = swish(gate) value."""
    dgate = dy * cache.value
    dgate *= cache.slope
    return dgate, dy * cache.activated


def _for_blocks(function: Callable[..., None], *arrays: Array) -> None:
    """Call the function with the same block of rows of each array. Shapes: all (..., F)."""
    rows = [as_rows(array) for array in arrays]
    for block in blocks(*rows[0].shape):
        function(*(array[block] for array in rows))


def _gelu_tanh_and_slope(x: Array, y: Array, slope: Array) -> None:
    """Write gelu_tanh(x) = x phi to y, and its derivative to `slope`. Shapes: all (n, F)."""
    square = x * x
    phi = square * (0.044715 * TANH_SCALE)
    phi += TANH_SCALE
    phi *= x  # inner = sqrt(2/pi) (x + 0.044715 x³)
    np.tanh(phi, out=phi)
    phi += 1
    phi *= 0.5
    np.multiply(x, phi, out=y)
    # the derivative is phi + x phi', where phi' = 2 phi (1 - phi) inner'
    square *= 6 * 0.044715 * TANH_SCALE
    square += 2 * TANH_SCALE  # 2 inner'
    np.subtract(1, phi, out=slope)
    slope *= phi
    slope *= square
    slope *= x
    slope += phi


def _swiglu_and_slope(gate: Array, value: Array, y: Array, activated: Array, slope: Array) -> None:
    """Write swish(gate) value, swish(gate) and the derivative of swish. Shapes: all (n, F)."""
    sigmoid = gate * 0.5
    np.tanh(sigmoid, out=sigmoid)
    sigmoid += 1
    sigmoid *= 0.5
    np.multiply(gate, sigmoid, out=activated)
    np.multiply(activated, value, out=y)
    # the derivative of gate s is s + gate s (1 - s)
    np.subtract(1, sigmoid, out=slope)
    slope *= activated
    slope += sigmoid


def _gelu_and_slope(x: Array, y: Array, slope: Array) -> None:
    """Write x Phi(x) to y, and its derivative Phi(x) + x Phi'(x) to `slope`. Shapes: all (n, F)."""
    square = x * x
    phi = square * COEFFICIENTS[-1]
    for coefficient in COEFFICIENTS[-2:0:-1]:
        phi += coefficient
        phi *= square
    phi += COEFFICIENTS[0]
    phi *= x  # x p(x²)
    np.tanh(phi, out=phi)
    phi += 1
    phi *= 0.5
    np.multiply(x, phi, out=y)
    # Phi'(x) = exp(-x² / 2) / sqrt(2 pi)
    square *= -0.5
    density = np.exp(square, out=square)
    density *= 1 / math.sqrt(2 * math.pi)
    density *= x
    np.add(phi, density, out=slope)
