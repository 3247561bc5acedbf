import numpy as np

from npformer.nn import Parameter


class ReZero:
    """y = x + alpha * tanh(x W); alpha starts at 0."""

    def __init__(self):
        self.alpha = Parameter(np.zeros(1))
        self.W = Parameter(np.random.default_rng(6).normal(size=(4, 4)))

    def forward(self, x):
        f = np.tanh(x @ self.W.value)
        return x + self.alpha.value * f, (x, f)

    def backward(self, dy, cache):
        x, f = cache
        self.alpha.grad += np.sum(dy * f)
        df = self.alpha.value * dy * (1 - f * f)
        self.W.grad += np.einsum("nti,ntj->ij", x, df)
        return dy + df @ self.W.value.T
