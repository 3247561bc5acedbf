import numpy as np

from npformer.nn import Parameter


class DropoutKeyword:
    """Dropout whose generator comes in through the keyword rng."""

    def __init__(self, p=0.3):
        self.p = p
        self.w = Parameter(np.random.default_rng(1).normal(size=5))

    def forward(self, x, *, train=False, rng=None):
        z = x * self.w.value
        if not train:
            return z, (x, None)
        mask = (np.random.default_rng(rng).random(x.shape) >= self.p) / (1 - self.p)
        return z * mask, (x, mask)

    def backward(self, dy, cache):
        x, mask = cache
        if mask is not None:
            dy = dy * mask
        self.w.grad += (dy * x).sum(axis=(0, 1))
        return dy * self.w.value
