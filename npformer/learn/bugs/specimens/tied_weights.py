"""A specimen with a bug: an embedding and an output projection that share their weight."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn import Linear
from npformer.nn.module import Module, Parameter


class NextTokenCache(NamedTuple):
    """The cache of NextToken."""

    ids: Any  # (...) integers
    between: Any  # of the linear map
    h: Any  # (..., D) the input of the projection


class NextToken(Module):
    """logits = tanh(weight[ids] W + b) weightᵀ: the embedding and the projection share a table.

    Shapes: ids (...) integers in [0, V) -> logits (..., V); weight (V, D).
    Source: Press and Wolf 2017.
    """

    def __init__(self, vocab_size=12, d_model=8, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.weight = Parameter((rng.standard_normal((vocab_size, d_model)) * d_model**-0.5).astype(dtype))
        self.between = Linear(d_model, d_model, rng=rng, dtype=dtype)

    def forward(self, ids):
        """Return (logits, cache)."""
        x = self.weight.value[ids]  # (..., D)
        h, between = self.between.forward(x)
        h = np.tanh(h)
        return h @ self.weight.value.T, NextTokenCache(ids, between, h)

    def backward(self, dlogits, cache):
        """Add the gradients of the parameters; ids have no gradient."""
        ids, between, h = cache
        # logits = h weightᵀ
        drows = dlogits.reshape(-1, dlogits.shape[-1])  # (N, V)
        self.weight.grad += drows.T @ h.reshape(-1, h.shape[-1])  # (V, D)
        dh = dlogits @ self.weight.value  # (..., D)
        # h = tanh(x W + b)
        dx = self.between.backward(dh * (1 - h * h), between)  # (..., D)
        # x = weight[ids]: each position adds its gradient to the row that it read
        dtable = np.zeros_like(self.weight.grad)  # (V, D)
        np.add.at(dtable, ids, dx)
        self.weight.grad[...] = dtable
