import numpy as np


class SavesSelf:
    """Keeps nothing on the layer: tanh with its output in the cache."""

    def forward(self, x):
        y = np.tanh(x)
        self.shape_seen = x.shape
        return y, (y,)

    def backward(self, dy, cache):
        (y,) = cache
        return dy * (1 - y * y)
