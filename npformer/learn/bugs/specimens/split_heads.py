"""A specimen with a bug: self-attention with several heads."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import attention, attention_backward
from npformer.nn import Linear
from npformer.nn.module import Module


def split_heads(x, n_heads):
    """Split the width into heads, so that each has its own matrix. Shapes: x (B, T, H·K) -> (B, H, T, K)."""
    batch, length, width = x.shape
    return x.reshape(batch, n_heads, length, width // n_heads)


def merge_heads(x):
    """Invert split_heads. Shapes: x (B, H, T, K) -> (B, T, H·K)."""
    batch, n_heads, length, width = x.shape
    return x.reshape(batch, length, n_heads * width)


class SelfAttentionCache(NamedTuple):
    """The cache of SelfAttention."""

    query_key_value: Any
    attention: Any
    output: Any


class SelfAttention(Module):
    """y = Concat(head_1 .. head_H) Wo, where each head attends with its own slice of the width.

    Shapes: x (B, T, D), mask bool broadcastable to (B, H, T, T) -> y (B, T, D).
    """

    def __init__(self, d_model=8, n_heads=2, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.n_heads = n_heads
        self.query_key_value = Linear(d_model, 3 * d_model, rng=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, rng=rng, dtype=dtype)

    def forward(self, x, mask=None):
        """Return (y, cache)."""
        y, made = self.query_key_value.forward(x)  # (B, T, 3 D)
        q, k, v = (split_heads(part, self.n_heads) for part in np.split(y, 3, -1))  # (B, H, T, K)
        z, attended = attention(q, k, v, mask)  # (B, H, T, K)
        y, output = self.output.forward(merge_heads(z))  # (B, T, D)
        return y, SelfAttentionCache(made, attended, output)

    def backward(self, dy, cache):
        """Return dx."""
        dz = split_heads(self.output.backward(dy, cache.output), self.n_heads)
        # splitting only rearranges numbers, so its backward pass is merging
        dparts = [merge_heads(part) for part in attention_backward(dz, cache.attention)]
        return self.query_key_value.backward(np.concatenate(dparts, -1), cache.query_key_value)
