"""Embedding: a learned vector for each word, and the way back from vectors to words."""

import numpy as np

from npformer.kernels import embedding, embedding_backward, linear, linear_backward
from npformer.layers.init import default_rng, normal
from npformer.module import Module, Parameter


class Embedding(Module):
    """y = scale weight[ids], and 0 where ids == zero_id.

    Shapes: ids (...) integers in [0, n) -> y (..., D); weight (n, D).
    Source: Vaswani et al. 2017, section 3.4.
    """

    def __init__(self, n, d_model, *, scale=1.0, zero_id=None, rng=None, dtype=np.float32):
        self.scale = scale
        self.zero_id = zero_id
        self.weight = Parameter(normal(default_rng(rng), (n, d_model), d_model**-0.5, dtype))
        if zero_id is not None:
            self.weight.value[zero_id] = 0

    def forward(self, ids):
        """Returns (y, cache)."""
        return embedding(ids, self.weight.value, self.scale, self.zero_id)

    def backward(self, dy, cache):
        """Returns nothing: ids have no gradient."""
        grad = self.weight.grad
        dtable = embedding_backward(dy, cache, out=grad)
        if dtable is not grad:  # else it was added there already
            grad += dtable


class TiedProjection(Module):
    """y = x weightᵀ + bias, with the weight of an embedding: a word's logit is its likeness to x.

    Shapes: x (..., D) -> y (..., V); weight (V, D) belongs to the embedding as well, and the two
    gradients add up. Source: Vaswani et al. 2017, section 3.4; Press and Wolf 2017.
    """

    def __init__(self, weight, *, bias=False, dtype=np.float32):
        self.weight = weight
        self.bias = Parameter(np.zeros(weight.shape[0], dtype)) if bias else None

    def forward(self, x):
        """Returns (y, cache)."""
        weight = self.weight.value
        bias = self.bias.value if self.bias is not None else None
        return linear(x, weight.T, bias)

    def backward(self, dy, cache):
        """Returns dx."""
        # the linear map's weight is the embedding's, transposed
        room = self.weight.room(transposed=True)  # (D, V)
        dx, dweight, dbias = linear_backward(dy, cache, out=room)
        if dweight is not room:  # else it was written where it belongs
            self.weight.grad += dweight.T  # (V, D)
        if self.bias is not None:
            self.bias.grad += dbias
        return dx
