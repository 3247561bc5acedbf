import numpy as np

from npformer.nn import Parameter


class ShapeSensitive:
    """Right for any batch; the wrong variant is right for batch 1 and for square shapes only."""

    def __init__(self):
        self.w = Parameter(np.random.default_rng(93).normal(size=(3,)))

    def forward(self, x):
        return (x * self.w.value).sum(-1), x

    def backward(self, dy, x):
        self.w.grad += np.einsum("bt,btd->d", dy, x)
        return dy[..., None] * self.w.value
