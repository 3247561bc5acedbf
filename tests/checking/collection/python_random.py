import random

import numpy as np


class RandomSign:
    """Flips the sign of the whole batch at random, with the random module of Python."""

    def forward(self, x):
        s = random.choice([-1.0, 1.0])
        return s * np.sinh(x), (s, x)

    def backward(self, dy, cache):
        s, x = cache
        return s * np.cosh(x) * dy
