import numpy as np


class HardTanh:
    def forward(self, x):
        return np.clip(x, -0.5, 0.5), x

    def backward(self, dy, x):
        return np.where((x > -0.5) & (x < 0.5), dy, 0.0)
