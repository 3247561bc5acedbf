"""LayerNorm: a normalization with a learned gain and bias."""

import numpy as np

from npformer.kernels import layer_norm, layer_norm_backward
from npformer.module import Module, Parameter


class LayerNorm(Module):
    """y = gain xhat + bias, with xhat = (x - mean) / sqrt(variance + eps) over the last axis.

    Shapes: x (..., D) -> y (..., D). Source: Ba et al. 2016, section 3.
    """

    def __init__(self, d_model, *, eps=1e-5, dtype=np.float32):
        self.eps = eps
        self.gain = Parameter(np.ones(d_model, dtype))
        self.bias = Parameter(np.zeros(d_model, dtype))

    def forward(self, x):
        """Returns (y, cache)."""
        return layer_norm(x, self.gain.value, self.bias.value, self.eps)

    def backward(self, dy, cache):
        """Returns dx."""
        dx, dgain, dbias = layer_norm_backward(dy, cache)
        self.gain.grad += dgain
        self.bias.grad += dbias
        return dx
