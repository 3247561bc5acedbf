"""Linear: a learned linear map."""

import numpy as np

from npformer.kernels import linear, linear_backward
from npformer.layers.init import default_rng, xavier_uniform
from npformer.module import Module, Parameter


class Linear(Module):
    """y = x weight + bias.

    Shapes: x (..., n_in) -> y (..., n_out); weight (n_in, n_out), bias (n_out,).
    """

    def __init__(self, n_in, n_out, *, bias=True, rng=None, dtype=np.float32):
        self.weight = Parameter(xavier_uniform(default_rng(rng), (n_in, n_out), dtype))
        self.bias = Parameter(np.zeros(n_out, dtype)) if bias else None

    def forward(self, x):
        """Returns (y, cache)."""
        return linear(x, self.weight.value, self.bias.value if self.bias is not None else None)

    def backward(self, dy, cache):
        """Returns dx."""
        room = self.weight.room()
        dx, dweight, dbias = linear_backward(dy, cache, out=room)
        if dweight is not room:  # else it was written where it belongs
            self.weight.grad += dweight
        if self.bias is not None:
            self.bias.grad += dbias
        return dx
