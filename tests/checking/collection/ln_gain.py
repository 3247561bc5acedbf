import numpy as np

from npformer.nn import Parameter


class LayerNormMine:
    def __init__(self, n=5, eps=1e-5):
        self.gain = Parameter(np.ones(n))
        self.bias = Parameter(np.zeros(n))
        self.eps = eps

    def forward(self, x):
        mu = x.mean(-1, keepdims=True)
        inv = 1 / np.sqrt(((x - mu) ** 2).mean(-1, keepdims=True) + self.eps)
        xhat = (x - mu) * inv
        return xhat * self.gain.value + self.bias.value, (xhat, inv)

    def backward(self, dy, cache):
        xhat, inv = cache
        self.gain.grad += (dy * xhat).sum(axis=(0, 1))
        self.bias.grad += dy.sum(axis=(0, 1))
        d = dy * self.gain.value
        return inv * (d - d.mean(-1, keepdims=True) - xhat * (d * xhat).mean(-1, keepdims=True))
