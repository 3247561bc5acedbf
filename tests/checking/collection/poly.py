import numpy as np

from npformer.nn import Parameter


class Horner:
    """Learned polynomial, one set of coefficients in a list of scalars."""

    def __init__(self):
        self.c = [Parameter(np.array(v)) for v in (0.5, -1.0, 0.25, 2.0)]

    def forward(self, x):
        y = 0.0
        for c in reversed(self.c):
            y = y * x + c.value
        return y, x

    def backward(self, dy, x):
        for k, c in enumerate(self.c):
            c.grad += (dy * x**k).sum()
        return dy * sum(k * c.value * x ** (k - 1) for k, c in enumerate(self.c) if k)
