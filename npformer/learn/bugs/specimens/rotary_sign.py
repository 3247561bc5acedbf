"""A specimen with a bug: attention with rotary positions, whose rotations are matrices."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import attention, attention_backward, rotary_table
from npformer.functional.masks import causal_mask
from npformer.nn import Linear
from npformer.nn.module import Module


def rotations(start, length, width):
    """Return the matrix of each position and each pair, (T, K/2, 2, 2)."""
    cos, sin = rotary_table(np.arange(start, start + length), width, base=100.0)  # (T, K/2)
    first, second = np.stack([cos, sin], -1), np.stack([sin, cos], -1)  # the two rows of each matrix
    return np.stack([first, second], -2)


def turned(x, matrices):
    """Multiply the pairs of x by their matrices. A pair has a number in each half of a vector.

    Shapes: x (B, T, K), matrices (T, K/2, 2, 2) -> (B, T, K).
    """
    batch, length, width = x.shape
    pairs = x.reshape(batch, length, 2, width // 2)
    return np.einsum("tkij,btjk->btik", matrices, pairs).reshape(x.shape)


class RotaryAttentionCache(NamedTuple):
    """The cache of RotaryAttention."""

    query_key_value: Any
    matrices: Any  # (T, K/2, 2, 2)
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
        matrices = rotations(start, length, width).astype(x.real.dtype)
        q, k, v = np.split(made, 3, -1)  # (B, T, D) each
        q, k = turned(q, matrices), turned(k, matrices)
        y, attended = attention(q, k, v, causal_mask(length, x))
        return y, RotaryAttentionCache(projected, matrices, attended)

    def backward(self, dy, cache):
        """Return dx."""
        dq, dk, dv = attention_backward(dy, cache.attention)
        transposed = cache.matrices.swapaxes(-1, -2)
        dq, dk = turned(dq, transposed), turned(dk, transposed)
        return self.query_key_value.backward(np.concatenate([dq, dk, dv], -1), cache.query_key_value)
