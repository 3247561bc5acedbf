import numpy as np

from npformer.nn import Parameter


class PaddedLookup:
    """Id 0 is padding: its embedding is multiplied by a bool mask."""

    def __init__(self):
        self.table = Parameter(np.random.default_rng(82).normal(size=(5, 3)))

    def forward(self, ids):
        real = ids != 0
        e = self.table.value[ids] * real[..., None]
        return e.sum(1) / real.sum(1, keepdims=True), (ids, real)

    def backward(self, dy, cache):
        ids, real = cache
        d = (dy / real.sum(1, keepdims=True))[:, None] * real[..., None]
        np.add.at(self.table.grad, ids, d)
