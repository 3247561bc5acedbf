import numpy as np


class HuberLoss:
    """Huber loss per entry, with a where; the kink of the derivative is at |x| = 1."""

    def forward(self, x):
        a = np.absolute(x)
        return np.where(a <= 1, 0.5 * x * x, a - 0.5), x

    def backward(self, dy, x):
        return dy * np.clip(x, -1, 1)
