import numpy as np

from npformer.nn import Parameter


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
