"""A specimen with a bug: attention with rotary positions."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import attention, attention_backward, rotary_table, rotate, rotate_backward
from npformer.functional.masks import causal_mask
from npformer.nn import Linear
from npformer.nn.module import Module


class RotaryAttentionCache(NamedTuple):
    """The cache of RotaryAttention."""

    query_key_value: Any
    rotation: Any
    attention: Any


class RotaryAttention(Module):
    """Causal self-attention with rotary positions. `start` is the position of the first token.

    Shapes: x (B, T, D) -> y (B, T, D).
    """

    def __init__(self, d_model=8, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.query_key_value = Linear(d_model, 3 * d_model, rng=rng, dtype=dtype)

    def forward(self, x, start=0):
        """Return (y, cache)."""
        made, projected = self.query_key_value.forward(x)  # (B, T, 3 D)
        _, length, width = x.shape
        tables = rotary_table(np.arange(start, start + length), width, base=100.0)
        cos, sin = (table.astype(x.real.dtype) for table in tables)  # (T, D/2)
        q, k, v = np.split(made, 3, -1)  # (B, T, D) each
        (q, rotation), (k, _), (v, _) = (rotate(part, cos, sin) for part in (q, k, v))
        y, attended = attention(q, k, v, causal_mask(length, x))
        return y, RotaryAttentionCache(projected, rotation, attended)

    def backward(self, dy, cache):
        """Return dx."""
        dq, dk, dv = attention_backward(dy, cache.attention)
        dq, dk, dv = (rotate_backward(part, cache.rotation) for part in (dq, dk, dv))
        return self.query_key_value.backward(np.concatenate([dq, dk, dv], -1), cache.query_key_value)
