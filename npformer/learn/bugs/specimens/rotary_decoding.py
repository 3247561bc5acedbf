"""A specimen with a bug: attention with rotary positions, for whole sentences and for decoding."""

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
    """Causal self-attention with rotary positions.

    Shapes: x (B, T, D) -> y (B, T, D). decode_step takes the next token alone, with its kv_cache.
    """

    def __init__(self, d_model=8, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.query_key_value = Linear(d_model, 3 * d_model, rng=rng, dtype=dtype)

    def forward(self, x):
        """Return (y, cache)."""
        (q, k, v), rotation, projected = self.project(x)
        y, attended = attention(q, k, v, causal_mask(x.shape[1], x))
        return y, RotaryAttentionCache(projected, rotation, attended)

    def decode_step(self, x, kv_cache=None):
        """Return (y, kv_cache) for the next token. Shapes: x (B, 1, D) -> y (B, 1, D)."""
        (q, k, v), _, _ = self.project(x)
        if kv_cache is not None:
            k, v = np.concatenate([kv_cache[0], k], 1), np.concatenate([kv_cache[1], v], 1)  # (B, S, D)
        y, _ = attention(q, k, v)
        return y, (k, v)

    def project(self, x, start=0):
        """Return q, k and v, (B, T, D) each, the cache of the rotation and that of the projection."""
        made, projected = self.query_key_value.forward(x)  # (B, T, 3 D)
        _, length, width = x.shape
        tables = rotary_table(np.arange(start, start + length), width, base=100.0)
        cos, sin = (table.astype(x.real.dtype) for table in tables)  # (T, D/2)
        q, k, v = np.split(made, 3, -1)
        (q, rotation), (k, _) = (rotate(part, cos, sin) for part in (q, k))
        return (q, k, v), rotation, projected

    def backward(self, dy, cache):
        """Return dx."""
        dq, dk, dv = attention_backward(dy, cache.attention)
        dq, dk = (rotate_backward(part, cache.rotation) for part in (dq, dk))
        return self.query_key_value.backward(np.concatenate([dq, dk, dv], -1), cache.query_key_value)
