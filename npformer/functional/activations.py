"""Activation functions: f(x) -> (y, cache) and f_backward(dy, cache) -> dx. All work elementwise.

Every function takes an array of any shape and returns an array of the same shape. Comparisons use the real
part, so that derivatives by complex step are possible (see npformer.checking).
"""

import math
from collections.abc import Callable
from typing import Any

from npformer.backend import Array, array_module, erf


def relu(x: Array) -> tuple[Array, Array]:
    """Compute y = max(0, x).

    Shapes: x (...) -> y (...).

    Returns:
        y, and the cache, which is y itself.

    Source: Vaswani et al. 2017, section 3.3.
    """
    xp = array_module(x)
    y = xp.where(x.real > 0, x, 0)
    return y, y


def relu_backward(dy: Array, cache: Array) -> Array:
    """Return dx = dy where y > 0, and 0 elsewhere, of the shape of dy."""
    y = cache
    xp = array_module(dy)
    # y = max(0, x): the derivative is 1 where x > 0, and 0 elsewhere
    return xp.where(y.real > 0, dy, 0)


def tanh(x: Array) -> tuple[Array, Array]:
    """Compute y = tanh(x).

    Shapes: x (...) -> y (...).

    Returns:
        y, and the cache, which is y itself.

    Source: the activation of the pooler in Google's code of BERT (Devlin et al. 2019).
    """
    y = array_module(x).tanh(x)
    return y, y


def tanh_backward(dy: Array, cache: Array) -> Array:
    """Return dx = dy (1 - y²), of the shape of dy."""
    y = cache
    # y = tanh(x), and tanh' = 1 - tanh²
    return dy * (1 - y * y)


def gelu(x: Array) -> tuple[Array, tuple[Array, Array]]:
    """Compute y = x Phi(x), where Phi is the distribution function of the standard normal distribution.

    Shapes: x (...) -> y (...).

    Source: Hendrycks and Gimpel 2016.
    """
    phi = _normal_cdf(x)
    return x * phi, (x, phi)


def gelu_backward(dy: Array, cache: tuple[Array, Array]) -> Array:
    """Return dx = dy (Phi(x) + x Phi'(x)), of the shape of dy."""
    x, phi = cache
    xp = array_module(dy)
    # y = x Phi(x): the product rule, where Phi' is the density of the normal distribution
    density = xp.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return dy * (phi + x * density)


def _normal_cdf(x: Array) -> Array:
    """Compute Phi(x) = (1 + erf(x / sqrt(2))) / 2."""
    xp = array_module(x)
    phi = (1 + erf(x.real / math.sqrt(2))) / 2
    # erf takes real numbers only. The imaginary part is tiny, so its first-order term suffices
    if x.dtype.kind == "c":
        phi = phi + 1j * x.imag * xp.exp(-x.real * x.real / 2) / math.sqrt(2 * math.pi)
    return phi


TANH_SCALE = math.sqrt(2 / math.pi)


def gelu_tanh(x: Array) -> tuple[Array, tuple[Array, Array]]:
    """Compute y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.

    GPT-2 and the later versions of Google's BERT code use this approximation of gelu.
    Shapes: x (...) -> y (...).

    Source: Hendrycks and Gimpel 2016, section 2.
    """
    xp = array_module(x)
    t = xp.tanh(TANH_SCALE * (x + 0.044715 * x * x * x))
    return x * (1 + t) / 2, (x, t)


def gelu_tanh_backward(dy: Array, cache: tuple[Array, Array]) -> Array:
    """Return dx = dy ((1 + t) + x (1 - t^2) inner') / 2, where t = tanh(inner(x)).

    Shapes: dy (...) -> dx (...).
    """
    x, t = cache
    # inner = sqrt(2/pi) (x + 0.044715 x^3)
    inner_slope = TANH_SCALE * (1 + 3 * 0.044715 * x * x)
    # y = x (1 + t) / 2: the product rule, where tanh' = 1 - tanh^2
    return dy * ((1 + t) + x * (1 - t * t) * inner_slope) / 2


def sigmoid(x: Array) -> tuple[Array, Array]:
    """Compute y = 1 / (1 + exp(-x)) as (1 + tanh(x / 2)) / 2, which cannot overflow.

    Shapes: x (...) -> y (...).

    Returns:
        y, and the cache, which is y itself.
    """
    y = (1 + array_module(x).tanh(x / 2)) / 2
    return y, y


def sigmoid_backward(dy: Array, cache: Array) -> Array:
    """Return dx = dy y (1 - y), of the shape of dy."""
    # y = sigmoid(x), and sigmoid' = y (1 - y)
    y = cache
    return dy * y * (1 - y)


def swish(x: Array) -> tuple[Array, tuple[Array, Array]]:
    """Compute y = x sigmoid(x), also called SiLU.

    Shapes: x (...) -> y (...).

    Source: Ramachandran et al. 2017.
    """
    s, _ = sigmoid(x)
    return x * s, (x, s)


def swish_backward(dy: Array, cache: tuple[Array, Array]) -> Array:
    """Return dx = dy (s + x s (1 - s)), where s = sigmoid(x), of the shape of dy."""
    x, s = cache
    # y = x s: the product rule, where sigmoid' = s (1 - s)
    return dy * (s + x * s * (1 - s))


def identity(x: Array) -> tuple[Array, None]:
    """Return y = x: the activation "none"."""
    return x, None


def identity_backward(dy: Array, cache: None) -> Array:
    """Return dx = dy."""
    return dy


# the pair of each activation, by name
ACTIVATIONS: dict[str, tuple[Callable[[Array], tuple[Array, Any]], Callable[[Array, Any], Array]]] = {
    "none": (identity, identity_backward),
    "relu": (relu, relu_backward),
    "gelu": (gelu, gelu_backward),
    "gelu_tanh": (gelu_tanh, gelu_tanh_backward),
    "swish": (swish, swish_backward),
}
