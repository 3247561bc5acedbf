from dataclasses import dataclass, field

import numpy as np

from npformer.nn import Parameter


def ones():
    return Parameter(np.array([1.5, -0.5, 0.8]))


@dataclass
class ScaleShift:
    """A dataclass whose parameters are made by default factories, one of them in a tuple of a tuple."""

    scale: Parameter = field(default_factory=ones)
    more: tuple = field(default_factory=lambda: ((ones(),), {"deep": [ones()]}))

    def forward(self, x):
        a, b = self.more[0][0].value, self.more[1]["deep"][0].value
        return x * self.scale.value + a * x**2 + b, x

    def backward(self, dy, x):
        axes = tuple(range(x.ndim - 1))
        self.scale.grad += (dy * x).sum(axes)
        self.more[0][0].grad += (dy * x**2).sum(axes)
        self.more[1]["deep"][0].grad += dy.sum(axes)
        return dy * (self.scale.value + 2 * self.more[0][0].value * x)
