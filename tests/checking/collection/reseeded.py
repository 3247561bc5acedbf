import numpy as np


class FixedNoise:
    """A generator that is made anew in every forward pass: the layer is deterministic."""

    def forward(self, x):
        noise = 1 + 0.2 * np.random.default_rng(99).normal(size=x.shape)
        return x * noise, None

    def backward(self, dy, cache):
        return dy * (1 + 0.2 * np.random.default_rng(99).normal(size=dy.shape))
