from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from npformer.nn import Parameter

Pair = namedtuple("Pair", "up down")


class Spaced:
    """Parameters in a SimpleNamespace and in a named tuple."""

    def __init__(self):
        r = np.random.default_rng(4)
        self.w = SimpleNamespace(q=Parameter(r.normal(size=(4, 4))), k=Parameter(r.normal(size=(4, 4))))
        self.mlp = Pair(Parameter(r.normal(size=(4, 5))), Parameter(r.normal(size=(5, 4))))

    def forward(self, x):
        q, k = x @ self.w.q.value, x @ self.w.k.value
        h = q * k
        u = h @ self.mlp.up.value
        return u**2 @ self.mlp.down.value, (x, q, k, h, u)

    def backward(self, dy, cache):
        x, q, k, h, u = cache
        self.mlp.down.grad += np.tensordot(u**2, dy, axes=([0, 1], [0, 1]))
        du = 2 * u * (dy @ self.mlp.down.value.T)
        self.mlp.up.grad += np.tensordot(h, du, axes=([0, 1], [0, 1]))
        dh = du @ self.mlp.up.value.T
        dq, dk = dh * k, dh * q
        self.w.q.grad += np.tensordot(x, dq, axes=([0, 1], [0, 1]))
        self.w.k.grad += np.tensordot(x, dk, axes=([0, 1], [0, 1]))
        return dq @ self.w.q.value.T + dk @ self.w.k.value.T
