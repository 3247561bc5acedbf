import numpy as np

from npformer.nn import Parameter


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
