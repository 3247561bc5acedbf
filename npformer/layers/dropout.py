"""Dropout as a layer: the pair with its rate."""

from npformer.kernels import dropout, dropout_backward
from npformer.module import Module


class Dropout(Module):
    """y = x keep / (1 - rate) while training, y = x otherwise. Shapes: x (...) -> y (...)."""

    def __init__(self, rate):
        self.rate = rate

    def forward(self, x, *, train=False, rng=None):
        """Returns (y, cache)."""
        return dropout(x, self.rate if train else 0, rng)

    def backward(self, dy, cache):
        """Returns dx."""
        return dropout_backward(dy, cache)
