import numpy as np

from npformer.nn import Parameter


class Constant:
    """x - x + c: dx is zero."""

    def __init__(self):
        self.c = Parameter(np.arange(4.0))

    def forward(self, x):
        return x - x + self.c.value, x.shape

    def backward(self, dy, shape):
        self.c.grad += dy.sum(axis=0)
        return np.zeros(shape)
