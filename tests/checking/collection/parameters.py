"""Layers with parameters in containers, in other layers and in several places."""

from collections import namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from npformer.nn import LayerNorm, Linear, Module, Parameter


class GatedDict:
    """y = sigmoid(x W + b) * x, parameters in a dict."""

    def __init__(self):
        rng = np.random.default_rng(11)
        self.p = {"W": Parameter(rng.standard_normal((4, 4)) * 0.4), "b": Parameter(rng.standard_normal(4))}

    def forward(self, x):
        g = 1 / (1 + np.exp(-(x @ self.p["W"].value + self.p["b"].value)))
        return g * x, {"x": x, "g": g}

    def backward(self, dy, cache):
        x, g = cache["x"], cache["g"]
        dz = dy * x * g * (1 - g)
        self.p["W"].grad += np.einsum("bti,btj->ij", x, dz)
        self.p["b"].grad += np.einsum("btj->j", dz)
        return dy * g + dz @ self.p["W"].value.T


class Affine:
    """y = x * scale + shift, the parameters in a tuple."""

    def __init__(self):
        self.theta = (Parameter(np.linspace(0.5, 1.5, 4)), Parameter(np.linspace(-1.0, 1.0, 4)))

    def forward(self, x):
        scale, shift = self.theta
        return x * scale.value + shift.value, x

    def backward(self, dy, x):
        scale, shift = self.theta
        axes = tuple(range(dy.ndim - 1))
        scale.grad += (dy * x).sum(axis=axes)
        shift.grad += dy.sum(axis=axes)
        return dy * scale.value


class Slotted:
    """Parameters in slots, and a property that returns them."""

    __slots__ = ("bias", "weight")

    def __init__(self):
        self.weight = Parameter(np.array([[1.0, -2.0], [0.5, 3.0], [1.5, 0.3]]))
        self.bias = Parameter(np.array([0.1, -0.2]))

    def forward(self, x):
        return x @ self.weight.value + self.bias.value, (x,)

    def backward(self, dy, cache):
        (x,) = cache
        self.weight.grad += x.reshape(-1, 3).T @ dy.reshape(-1, 2)
        self.bias.grad += dy.reshape(-1, 2).sum(axis=0)
        return dy @ self.weight.value.T


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


def ones():
    return Parameter(np.array([1.5, -0.5, 0.8]))


@dataclass
class ScaleShift:
    """A dataclass whose parameters are made by default factories, one of them in a tuple of a tuple."""

    scale: Parameter = field(default_factory=ones)
    more: tuple = field(default_factory=lambda: ((ones(),), {"deep": [ones()]}))

    def forward(self, x):
        a, b = self.more[0][0].value, self.more[1]["deep"][0].value
        return x * self.scale.value + a * x**2 + b, x

    def backward(self, dy, x):
        axes = tuple(range(x.ndim - 1))
        self.scale.grad += (dy * x).sum(axes)
        self.more[0][0].grad += (dy * x**2).sum(axes)
        self.more[1]["deep"][0].grad += dy.sum(axes)
        return dy * (self.scale.value + 2 * self.more[0][0].value * x)


class Bank(Module):
    """A Module with a dict of layers, a dict of a list of parameters, and a tuple of layers."""

    def __init__(self):
        rng = np.random.default_rng(3)
        make = lambda: Linear(4, 4, rng=rng, dtype=np.float64)
        self.bank = {"query": make(), "key": make()}
        self.extra = {"gains": [Parameter(rng.normal(size=4)), Parameter(rng.normal(size=4))]}
        self.tail = (make(),)

    def forward(self, x):
        q, cq = self.bank["query"].forward(x)
        k, ck = self.bank["key"].forward(x)
        g0, g1 = self.extra["gains"]
        h = q * g0.value + np.cos(k) * g1.value
        y, ct = self.tail[0].forward(h)
        return y, (q, k, cq, ck, ct)

    def backward(self, dy, cache):
        q, k, cq, ck, ct = cache
        g0, g1 = self.extra["gains"]
        dh = self.tail[0].backward(dy, ct)
        g0.grad += (dh * q).sum(axis=(0, 1))
        g1.grad += (dh * np.cos(k)).sum(axis=(0, 1))
        dx = self.bank["query"].backward(dh * g0.value, cq)
        dx = dx + self.bank["key"].backward(-dh * g1.value * np.sin(k), ck)
        return dx


class Scale:
    def __init__(self, n, seed):
        self.s = Parameter(np.random.default_rng(seed).normal(size=n))

    def forward(self, x):
        return x * self.s.value, x

    def backward(self, dy, x):
        self.s.accumulate((dy * x).reshape(-1, x.shape[-1]).sum(0))
        return dy * self.s.value


class Tree:
    """Layers in lists of dicts of lists."""

    def __init__(self):
        self.blocks = [
            {"left": [Scale(4, 1), Scale(4, 2)], "right": Scale(4, 3)},
            {"left": [Scale(4, 4)], "right": Scale(4, 5)},
        ]

    def forward(self, x):
        caches = []
        for block in self.blocks:
            left, cl = x, []
            for layer in block["left"]:
                left, c = layer.forward(left)
                cl.append(c)
            right, cr = block["right"].forward(x)
            x = np.sin(left) + right
            caches.append((cl, cr, left))
        return x, caches

    def backward(self, dy, caches):
        for block, (cl, cr, left) in zip(reversed(self.blocks), reversed(caches)):
            dleft = dy * np.cos(left)
            for layer, c in zip(reversed(block["left"]), reversed(cl)):
                dleft = layer.backward(dleft, c)
            dy = dleft + block["right"].backward(dy, cr)
        return dy


class Stack:
    def __init__(self):
        rng = np.random.default_rng(8)
        self.layers = [Linear(4, 4, rng=rng, dtype=np.float64) for _ in range(3)]

    def forward(self, x):
        caches = []
        for layer in self.layers:
            z, c = layer.forward(x)
            x = np.tanh(z)
            caches.append((c, x))
        return x, caches

    def backward(self, dy, caches):
        for layer, (c, y) in zip(self.layers[::-1], caches[::-1]):
            dy = layer.backward(dy * (1 - y * y), c)
        return dy


class Block:
    """A plain class around npformer layers: x + Linear(relu-free f(LayerNorm(x)))."""

    def __init__(self):
        rng = np.random.default_rng(2)
        self.norm = LayerNorm(4, dtype=np.float64)
        self.up = Linear(4, 6, rng=rng, dtype=np.float64)
        self.down = Linear(6, 4, rng=rng, dtype=np.float64)

    def forward(self, x):
        n, cn = self.norm.forward(x)
        u, cu = self.up.forward(n)
        h = u * np.exp(-(u**2))
        d, cd = self.down.forward(h)
        return x + d, (cn, cu, u, cd)

    def backward(self, dy, cache):
        cn, cu, u, cd = cache
        dh = self.down.backward(dy, cd)
        du = dh * np.exp(-(u**2)) * (1 - 2 * u**2)
        dx = self.norm.backward(self.up.backward(du, cu), cn)
        return dy + dx


class Twice:
    """One npformer Linear applied twice, listed twice in a list."""

    def __init__(self):
        layer = Linear(4, 4, rng=np.random.default_rng(1), dtype=np.float64)
        self.layers = [layer, layer]

    def forward(self, x):
        a, ca = self.layers[0].forward(x)
        h = np.tanh(a)
        b, cb = self.layers[1].forward(h)
        return b, (ca, h, cb)

    def backward(self, dy, cache):
        ca, h, cb = cache
        return self.layers[0].backward(self.layers[1].backward(dy, cb) * (1 - h**2), ca)


class TiedAutoencoder:
    """y = tanh(x W) W^T with one shared weight."""

    def __init__(self):
        self.W = Parameter(np.random.default_rng(0).normal(size=(4, 3)))
        self.decoder = {"weight": self.W}

    def forward(self, x):
        h = np.tanh(x @ self.W.value)
        return h @ self.decoder["weight"].value.T, (x, h)

    def backward(self, dy, cache):
        x, h = cache
        dz = (dy @ self.W.value) * (1 - h * h)
        self.W.grad += np.einsum("btd,bth->dh", dy, h)
        self.W.grad += np.einsum("btd,bth->dh", x, dz)
        return dz @ self.W.value.T


class LoopedBias:
    """The same bias is added in each of three steps: its gradient is a sum of three."""

    def __init__(self):
        self.b = Parameter(np.array([0.1, -0.4, 0.9, 0.0]))

    def forward(self, x):
        zs = []
        for _ in range(3):
            x = np.sin(x + self.b.value)
            zs.append(x)
        return x, zs

    def backward(self, dy, zs):
        for y in reversed(zs):
            dy = dy * self._slope(y)
            self.b.accumulate(dy.sum(axis=0))
        return dy

    @staticmethod
    def _slope(y):
        return y[1]


# the slope is kept beside the output
def _forward(self, x):
    zs = []
    for _ in range(3):
        z = x + self.b.value
        x = np.sin(z)
        zs.append((x, np.cos(z)))
    return x, zs


LoopedBias.forward = _forward


class Temperature:
    """A 0-d parameter."""

    def __init__(self):
        self.t = Parameter(np.array(1.7))

    def forward(self, x):
        return x / self.t.value, x

    def backward(self, dy, x):
        self.t.grad -= (dy * x).sum() / self.t.value**2
        return dy / self.t.value


class RootScale:
    """y = x sqrt(s): the parameter must stay positive."""

    def __init__(self):
        self.s = Parameter(np.full(4, 0.01))

    def forward(self, x):
        r = np.sqrt(self.s.value)
        return x * r, (x, r)

    def backward(self, dy, cache):
        x, r = cache
        self.s.grad += (dy * x).sum(axis=(0, 1)) / (2 * r)
        return dy * r
