import numpy as np


class CumulativeMean:
    def forward(self, x):
        n = np.arange(1, x.shape[1] + 1)[None, :, None]
        return np.cumsum(x, axis=1) / n, n

    def backward(self, dy, n):
        g = dy / n
        return np.flip(np.cumsum(np.flip(g, axis=1), axis=1), axis=1)
