"""Layers that change each number by itself."""

import math

import numpy as np

from npformer.nn import Parameter


class Cube:
    def forward(self, x):
        return x**3, x

    def backward(self, dy, x):
        return 3 * x**2 * dy


class MostlyIdentity:
    def forward(self, x):
        return x + 0.1 * x**2, x

    def backward(self, dy, x):
        dx = dy * (1 + 0.2 * x)
        return dx


class Negate:
    """Linear: needs no cache."""

    def forward(self, x):
        return 3.0 - 2.0 * x, None

    def backward(self, dy, cache):
        return -2.0 * dy


class HardTanh:
    def forward(self, x):
        return np.clip(x, -0.5, 0.5), x

    def backward(self, dy, x):
        return np.where((x > -0.5) & (x < 0.5), dy, 0.0)


class LeakyWhere:
    def __init__(self):
        self.slope = Parameter(np.array(0.2))

    def forward(self, x):
        return np.where(x > 0, x, self.slope.value * x), x

    def backward(self, dy, x):
        self.slope.grad += np.sum(np.where(x > 0, 0, dy * x))
        return np.where(x > 0, dy, self.slope.value * dy)


class AbsSign:
    """y = |x| + sign(x) * w."""

    def __init__(self):
        self.w = Parameter(np.array([0.5, -0.3, 2.0, 1.0]))

    def forward(self, x):
        return np.abs(x) + np.sign(x) * self.w.value, np.sign(x)

    def backward(self, dy, s):
        self.w.grad += (dy * s).sum(axis=tuple(range(dy.ndim - 1)))
        return dy * s


class HuberLoss:
    """Huber loss per entry, with a where; the kink of the derivative is at |x| = 1."""

    def forward(self, x):
        a = np.absolute(x)
        return np.where(a <= 1, 0.5 * x * x, a - 0.5), x

    def backward(self, dy, x):
        return dy * np.clip(x, -1, 1)


class RowMax:
    """max over the last axis; a tie shares the gradient."""

    def forward(self, x):
        m = x.max(-1, keepdims=True)
        hit = x == m
        return m[..., 0], hit / hit.sum(-1, keepdims=True)

    def backward(self, dy, share):
        return dy[..., None] * share


erf = np.vectorize(math.erf, otypes=[float])


class GeluErf:
    """GELU with math.erf, which takes no complex numbers."""

    def forward(self, x):
        phi = 0.5 * (1 + erf(x / math.sqrt(2)))
        return x * phi, (x, phi)

    def backward(self, dy, cache):
        x, phi = cache
        pdf = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return dy * (phi + x * pdf)


class ScalarLoop:
    """Python floats in a loop."""

    def forward(self, x):
        out = [math.log1p(math.exp(float(v))) for v in x.ravel()]
        return np.array(out).reshape(x.shape), x

    def backward(self, dy, x):
        g = [1.0 / (1.0 + math.exp(-float(v))) for v in x.ravel()]
        return dy * np.array(g).reshape(x.shape)


class StrictFloat:
    """Refuses everything but float64, as compiled code does."""

    def forward(self, x):
        if x.dtype != np.float64:
            raise TypeError(f"float64 expected, got {x.dtype}")
        return np.arctan2(x, 2.0), x

    def backward(self, dy, x):
        return dy * 2.0 / (4.0 + x**2)


class Horner:
    """Learned polynomial, one set of coefficients in a list of scalars."""

    def __init__(self):
        self.c = [Parameter(np.array(v)) for v in (0.5, -1.0, 0.25, 2.0)]

    def forward(self, x):
        y = 0.0
        for c in reversed(self.c):
            y = y * x + c.value
        return y, x

    def backward(self, dy, x):
        for k, c in enumerate(self.c):
            c.grad += (dy * x**k).sum()
        return dy * sum(k * c.value * x ** (k - 1) for k, c in enumerate(self.c) if k)


class FiLM:
    """Broadcasting: x (B, T, D) is modulated by c (B, D)."""

    def forward(self, x, c):
        return x * np.exp(c)[:, None], (x, c)

    def backward(self, dy, cache):
        x, c = cache
        g = np.exp(c)
        return dy * g[:, None], (dy * x).sum(1) * g


class ReZero:
    """y = x + alpha * tanh(x W); alpha starts at 0."""

    def __init__(self):
        self.alpha = Parameter(np.zeros(1))
        self.W = Parameter(np.random.default_rng(6).normal(size=(4, 4)))

    def forward(self, x):
        f = np.tanh(x @ self.W.value)
        return x + self.alpha.value * f, (x, f)

    def backward(self, dy, cache):
        x, f = cache
        self.alpha.grad += np.sum(dy * f)
        df = self.alpha.value * dy * (1 - f * f)
        self.W.grad += np.einsum("nti,ntj->ij", x, df)
        return dy + df @ self.W.value.T


class Constant:
    """x - x + c: dx is zero."""

    def __init__(self):
        self.c = Parameter(np.arange(4.0))

    def forward(self, x):
        return x - x + self.c.value, x.shape

    def backward(self, dy, shape):
        self.c.grad += dy.sum(axis=0)
        return np.zeros(shape)
