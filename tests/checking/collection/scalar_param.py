import numpy as np

from npformer.nn import Parameter


class Temperature:
    """A 0-d parameter."""

    def __init__(self):
        self.t = Parameter(np.array(1.7))

    def forward(self, x):
        return x / self.t.value, x

    def backward(self, dy, x):
        self.t.grad -= (dy * x).sum() / self.t.value**2
        return dy / self.t.value
