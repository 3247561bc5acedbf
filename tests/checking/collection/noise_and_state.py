"""Layers that draw random numbers or have a state."""

import random

import numpy as np

from npformer.nn import Context, Linear, Parameter


class DropoutKeyword:
    """Dropout whose generator comes in through the keyword rng."""

    def __init__(self, p=0.3):
        self.p = p
        self.w = Parameter(np.random.default_rng(1).normal(size=5))

    def forward(self, x, *, train=False, rng=None):
        z = x * self.w.value
        if not train:
            return z, (x, None)
        mask = (np.random.default_rng(rng).random(x.shape) >= self.p) / (1 - self.p)
        return z * mask, (x, mask)

    def backward(self, dy, cache):
        x, mask = cache
        if mask is not None:
            dy = dy * mask
        self.w.grad += (dy * x).sum(axis=(0, 1))
        return dy * self.w.value


class DropoutOwn:
    """Dropout with a generator of its own: every forward pass draws another mask."""

    def __init__(self, p=0.4):
        self.p = p
        self.rng = np.random.default_rng(0)

    def forward(self, x):
        keep = self.rng.random(x.shape) >= self.p
        return x * keep / (1 - self.p), keep

    def backward(self, dy, keep):
        return dy * keep / (1 - self.p)


class ContextDropout:
    """An npformer-style layer whose dropout takes its generator from a Context."""

    def __init__(self):
        self.lin = Linear(4, 4, rng=np.random.default_rng(3), dtype=np.float64)

    def forward(self, x, context=Context()):
        z, cz = self.lin.forward(x)
        p = context.dropout(0.5)
        mask = None
        if p:
            mask = (context.rng.random(z.shape) >= p) / (1 - p)
            z = z * mask
        return np.tanh(z), (cz, mask, np.tanh(z))

    def backward(self, dy, cache):
        cz, mask, y = cache
        dz = dy * (1 - y**2)
        if mask is not None:
            dz = dz * mask
        return self.lin.backward(dz, cz)


class RandomSign:
    """Flips the sign of the whole batch at random, with the random module of Python."""

    def forward(self, x):
        s = random.choice([-1.0, 1.0])
        return s * np.sinh(x), (s, x)

    def backward(self, dy, cache):
        s, x = cache
        return s * np.cosh(x) * dy


class GlobalNoise:
    """Additive noise from the global generator of NumPy."""

    def __init__(self):
        self.sigma = Parameter(np.array([0.5, 1.0, 0.1, 2.0]))

    def forward(self, x):
        eps = np.random.randn(*x.shape)
        return x**2 + self.sigma.value * eps, (x, eps)

    def backward(self, dy, cache):
        x, eps = cache
        self.sigma.grad += (dy * eps).sum(axis=(0, 1))
        return 2 * x * dy


class FixedNoise:
    """A generator that is made anew in every forward pass: the layer is deterministic."""

    def forward(self, x):
        noise = 1 + 0.2 * np.random.default_rng(99).normal(size=x.shape)
        return x * noise, None

    def backward(self, dy, cache):
        return dy * (1 + 0.2 * np.random.default_rng(99).normal(size=dy.shape))


class SavesSelf:
    """Keeps nothing on the layer: tanh with its output in the cache."""

    def forward(self, x):
        y = np.tanh(x)
        self.shape_seen = x.shape
        return y, (y,)

    def backward(self, dy, cache):
        (y,) = cache
        return dy * (1 - y * y)
