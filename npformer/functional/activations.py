"""Activations: f(x) -> (y, cache) and f_backward(dy, cache) -> dx, element by element.

Comparisons look at the real part, so that a complex step passes through (see npformer.gradcheck).
"""

import math

from npformer.backend import array_module, erf


def relu(x):
    """y = max(0, x). Source: Vaswani et al. 2017, section 3.3."""
    xp = array_module(x)
    y = xp.where(x.real > 0, x, 0)
    return y, y


def relu_backward(dy, cache):
    """dx = dy where y > 0, else 0."""
    y = cache
    xp = array_module(dy)
    # y = max(0, x): the gradient passes where x did
    return xp.where(y.real > 0, dy, 0)


def gelu(x):
    """y = x Phi(x), with Phi the normal distribution function. Source: Hendrycks and Gimpel 2016."""
    phi = _normal_cdf(x)
    return x * phi, (x, phi)


def gelu_backward(dy, cache):
    """dx = dy (Phi(x) + x Phi'(x))."""
    x, phi = cache
    xp = array_module(dy)
    # y = x Phi(x): a product, and Phi' is the normal density
    density = xp.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return dy * (phi + x * density)


def _normal_cdf(x):
    """Phi(x) = (1 + erf(x / sqrt(2))) / 2."""
    xp = array_module(x)
    phi = (1 + erf(x.real / math.sqrt(2))) / 2
    if x.dtype.kind == "c":  # erf takes real numbers: follow its tangent, exact for a tiny imaginary part
        phi = phi + 1j * x.imag * xp.exp(-x.real * x.real / 2) / math.sqrt(2 * math.pi)
    return phi


TANH_SCALE = math.sqrt(2 / math.pi)


def gelu_tanh(x):
    """y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, the approximation that GPT and BERT use."""
    xp = array_module(x)
    t = xp.tanh(TANH_SCALE * (x + 0.044715 * x * x * x))
    return x * (1 + t) / 2, (x, t)


def gelu_tanh_backward(dy, cache):
    """dx = dy ((1 + t) + x (1 - t^2) inner') / 2, with t the tangens hyperbolicus of inner(x)."""
    x, t = cache
    # inner = sqrt(2/pi) (x + 0.044715 x^3)
    dinner = TANH_SCALE * (1 + 3 * 0.044715 * x * x)
    # y = x (1 + t) / 2, and tanh' = 1 - tanh^2
    return dy * ((1 + t) + x * (1 - t * t) * dinner) / 2


def sigmoid(x):
    """y = 1 / (1 + exp(-x)), in a form that cannot overflow."""
    y = (1 + array_module(x).tanh(x / 2)) / 2
    return y, y


def sigmoid_backward(dy, cache):
    """dx = dy y (1 - y)."""
    y = cache
    return dy * y * (1 - y)


def swish(x):
    """y = x sigmoid(x), also called SiLU. Source: Ramachandran et al. 2017."""
    s, _ = sigmoid(x)
    return x * s, (x, s)


def swish_backward(dy, cache):
    """dx = dy (s + x s (1 - s)), with s = sigmoid(x)."""
    x, s = cache
    # y = x s, and sigmoid' = s (1 - s)
    return dy * (s + x * s * (1 - s))


def identity(x):
    """y = x: the activation that is none."""
    return x, None


def identity_backward(dy, cache):
    """dx = dy."""
    return dy


ACTIVATIONS = {
    "none": (identity, identity_backward),
    "relu": (relu, relu_backward),
    "gelu": (gelu, gelu_backward),
    "gelu_tanh": (gelu_tanh, gelu_tanh_backward),
    "swish": (swish, swish_backward),
}
