import math

import numpy as np


class ScalarLoop:
    """Python floats in a loop."""

    def forward(self, x):
        out = [math.log1p(math.exp(float(v))) for v in x.ravel()]
        return np.array(out).reshape(x.shape), x

    def backward(self, dy, x):
        g = [1.0 / (1.0 + math.exp(-float(v))) for v in x.ravel()]
        return dy * np.array(g).reshape(x.shape)
