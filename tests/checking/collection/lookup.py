import numpy as np

from npformer.nn import Parameter


class Interpolate:
    """Piecewise linear interpolation in a table of learned values at the integers -6..6."""

    def __init__(self):
        self.table = Parameter(np.random.default_rng(31).normal(size=13))

    def forward(self, x):
        pos = np.clip(x + 6, 0, 11.999999)
        i = np.floor(pos).astype(int)
        f = pos - i
        t = self.table.value
        return (1 - f) * t[i] + f * t[i + 1], (x, i, f)

    def backward(self, dy, cache):
        x, i, f = cache
        t = self.table.value
        np.add.at(self.table.grad, i, dy * (1 - f))
        np.add.at(self.table.grad, i + 1, dy * f)
        inside = (x > -6) & (x < 5.999999)
        return dy * (t[i + 1] - t[i]) * inside
