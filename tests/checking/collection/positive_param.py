import numpy as np

from npformer.nn import Parameter


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
