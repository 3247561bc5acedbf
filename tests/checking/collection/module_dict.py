import numpy as np

from npformer.nn import Linear, Module, Parameter


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
