import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


class GeluErf:
    """GELU with math.erf, which takes no complex numbers."""

    def forward(self, x):
        phi = 0.5 * (1 + erf(x / math.sqrt(2)))
        return x * phi, (x, phi)

    def backward(self, dy, cache):
        x, phi = cache
        pdf = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return dy * (phi + x * pdf)
