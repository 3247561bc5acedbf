"""A specimen with a bug: self-attention with one head."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import softmax, softmax_backward
from npformer.nn import Linear
from npformer.nn.module import Module


class SelfAttentionCache(NamedTuple):
    """The cache of SelfAttention."""

    query_key_value: Any
    q: Any  # (B, T, D)
    k: Any  # (B, T, D)
    v: Any  # (B, T, D)
    weights: Any  # (B, T, T)


class SelfAttention(Module):
    """y = x + softmax(q kᵀ / sqrt(D)) v, with q, k, v linear in x.

    Shapes: x (B, T, D) -> y (B, T, D).
    """

    def __init__(self, d_model=16, *, rng=None, dtype=np.float32):
        rng = np.random.default_rng(0) if rng is None else rng
        self.query_key_value = Linear(d_model, 3 * d_model, rng=rng, dtype=dtype)
        self.scale = 1 / np.sqrt(d_model)

    def forward(self, x):
        """Return (y, cache)."""
        made, cache = self.query_key_value.forward(x)
        q, k, v = np.split(made, 3, -1)
        weights, _ = softmax(q @ k.swapaxes(-1, -2) * self.scale)  # (B, T, T)
        return x + weights @ v, SelfAttentionCache(cache, q, k, v, weights)

    def backward(self, dy, cache):
        """Return dx."""
        made, q, k, v, weights = cache
        # y = x + weights v
        dweights = dy @ v.swapaxes(-1, -2)  # (B, T, T)
        dv = weights.swapaxes(-1, -2) @ dy
        # weights = softmax(q kᵀ scale)
        dscores = softmax_backward(dweights, weights) * self.scale
        dq, dk = dscores @ k, dscores.swapaxes(-1, -2) @ q
        return dy + self.query_key_value.backward(np.concatenate([dq, dk, dv], -1), made)
