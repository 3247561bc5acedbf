import numpy as np


class FiLM:
    """Broadcasting: x (B, T, D) is modulated by c (B, D)."""

    def forward(self, x, c):
        return x * np.exp(c)[:, None], (x, c)

    def backward(self, dy, cache):
        x, c = cache
        g = np.exp(c)
        return dy * g[:, None], (dy * x).sum(1) * g
