import numpy as np

from npformer.nn import Parameter


class AbsSign:
    """y = |x| + sign(x) * w."""

    def __init__(self):
        self.w = Parameter(np.array([0.5, -0.3, 2.0, 1.0]))

    def forward(self, x):
        return np.abs(x) + np.sign(x) * self.w.value, np.sign(x)

    def backward(self, dy, s):
        self.w.grad += (dy * s).sum(axis=tuple(range(dy.ndim - 1)))
        return dy * s
