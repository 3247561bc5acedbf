import numpy as np

from npformer.nn import Parameter


class GlobalNoise:
    """Additive noise from the global generator of NumPy."""

    def __init__(self):
        self.sigma = Parameter(np.array([0.5, 1.0, 0.1, 2.0]))

    def forward(self, x):
        eps = np.random.randn(*x.shape)
        return x**2 + self.sigma.value * eps, (x, eps)

    def backward(self, dy, cache):
        x, eps = cache
        self.sigma.grad += (dy * eps).sum(axis=(0, 1))
        return 2 * x * dy
