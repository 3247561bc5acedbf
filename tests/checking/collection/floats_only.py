import numpy as np


class StrictFloat:
    """Refuses everything but float64, as compiled code does."""

    def forward(self, x):
        if x.dtype != np.float64:
            raise TypeError(f"float64 expected, got {x.dtype}")
        return np.arctan2(x, 2.0), x

    def backward(self, dy, x):
        return dy * 2.0 / (4.0 + x**2)
