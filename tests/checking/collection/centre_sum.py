import numpy as np

from npformer.nn import Parameter


class CentreSum:
    def __init__(self):
        self.w = Parameter(np.random.default_rng(12).normal(size=5))

    def forward(self, x):
        z = x * self.w.value
        c = z - z.mean(axis=-1, keepdims=True)
        return c.sum(axis=-1, keepdims=True), x

    def backward(self, dy, x):
        dc = dy * np.ones_like(x)
        dz = dc - dc.mean(axis=-1, keepdims=True)
        self.w.grad += (dz * x).sum(axis=(0, 1))
        return dz * self.w.value
