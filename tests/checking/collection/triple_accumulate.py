import numpy as np

from npformer.nn import Parameter


class LoopedBias:
    """The same bias is added in each of three steps: its gradient is a sum of three."""

    def __init__(self):
        self.b = Parameter(np.array([0.1, -0.4, 0.9, 0.0]))

    def forward(self, x):
        zs = []
        for _ in range(3):
            x = np.sin(x + self.b.value)
            zs.append(x)
        return x, zs

    def backward(self, dy, zs):
        for y in reversed(zs):
            dy = dy * self._slope(y)
            self.b.accumulate(dy.sum(axis=0))
        return dy

    @staticmethod
    def _slope(y):
        return y[1]


# the slope is kept beside the output
def _forward(self, x):
    zs = []
    for _ in range(3):
        z = x + self.b.value
        x = np.sin(z)
        zs.append((x, np.cos(z)))
    return x, zs


LoopedBias.forward = _forward
