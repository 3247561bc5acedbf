import numpy as np

from npformer.nn import Parameter


class Lookup:
    """Token embedding: integer input, no gradient for it."""

    def __init__(self):
        self.table = Parameter(np.random.default_rng(80).normal(size=(7, 4)))

    def forward(self, ids):
        return self.table.value[ids] * 2.0, ids

    def backward(self, dy, ids):
        np.add.at(self.table.grad, ids, 2.0 * dy)
        return
