"""A specimen with a bug: attention with relative positions, for whole sentences and for decoding."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import attention, attention_backward
from npformer.functional.masks import causal_mask
from npformer.nn import Linear
from npformer.nn.module import Module, Parameter


def distances(n_queries, n_keys, most):
    """Return the index of the vector for key s and query t: clip(s - t, -most, most), counted from 0.

    Shapes: -> (T, S) integers from 0 to 2 most.
    """
    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
    return np.clip(away, -most, most) + most


class RelativeAttentionCache(NamedTuple):
    """The cache of RelativeAttention."""

    query_key_value: Any
    distance: Any  # (T, S)
    attention: Any


class RelativeAttention(Module):
    """Causal self-attention in which a key is k_s plus the learned vector of its distance to the query.

    Shapes: x (B, T, D) -> y (B, T, D). decode_step takes the next token alone, with its kv_cache.
    """

    def __init__(self, d_model=8, most=4, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.most = most
        self.query_key_value = Linear(d_model, 3 * d_model, rng=rng, dtype=dtype)
        self.positions = Parameter(rng.standard_normal((2 * most + 1, d_model)).astype(dtype))

    def forward(self, x):
        """Return (y, cache)."""
        made, projected = self.query_key_value.forward(x)  # (B, T, 3 D)
        q, k, v = np.split(made, 3, -1)  # (B, T, D) each
        y, distance, attended = self.attend(q, k, v, causal_mask(x.shape[1], x))
        return y, RelativeAttentionCache(projected, distance, attended)

    def decode_step(self, x, kv_cache=None):
        """Return (y, kv_cache) for the next token. Shapes: x (B, 1, D) -> y (B, 1, D)."""
        made, _ = self.query_key_value.forward(x)  # (B, 1, 3 D)
        q, k, v = np.split(made, 3, -1)
        if kv_cache is not None:
            k, v = np.concatenate([kv_cache[0], k], 1), np.concatenate([kv_cache[1], v], 1)  # (B, S, D)
        y, _, _ = self.attend(q, k, v, np.ones((1, k.shape[1]), bool))
        return y, (k, v)

    def attend(self, q, k, v, mask):
        """Attend with each query separately, because the keys depend on it. Shapes: mask (T, S)."""
        distance = distances(q.shape[1], k.shape[1], self.most)
        keys = k[:, None] + self.positions.value[distance]  # (B, T, S, D)
        values = np.broadcast_to(v[:, None], keys.shape)
        y, cache = attention(q[:, :, None], keys, values, mask[:, None])  # (B, T, 1, D)
        return y[:, :, 0], distance, cache

    def backward(self, dy, cache):
        """Return dx."""
        dq, dkeys, dvalues = attention_backward(dy[:, :, None], cache.attention)
        # keys = k + positions[distance]: a vector is used by every pair of tokens at this distance
        np.add.at(self.positions.grad, cache.distance, dkeys.sum(0))
        made = np.concatenate([dq[:, :, 0], dkeys.sum(1), dvalues.sum(1)], -1)  # (B, T, 3 D)
        return self.query_key_value.backward(made, cache.query_key_value)
