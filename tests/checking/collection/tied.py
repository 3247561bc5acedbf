import numpy as np

from npformer.nn import Parameter


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
