"""CappedAttention: multi-head attention whose scores are softly capped."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.attend import AttendCache, attend, attend_backward
from npformer.functional.caches import cache_class
from npformer.functional.linear import sum_to_shape
from npformer.functional.soft_cap import SoftCapCache, soft_cap, soft_cap_backward
from npformer.nn.attention.multi_head import MultiHeadAttention
from npformer.nn.context import EVERYTHING, INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng


@cache_class
class CappedAttentionCache(NamedTuple):
    """The cache of CappedAttention.attend. It is the field `attention` of the MultiHeadCache."""

    q: Array  # (B, H, T, K)
    k: Array  # (B, H, S, K)
    cap: SoftCapCache
    attend: AttendCache

    @property
    def weights(self) -> Array:
        """The attention weights, (B, H, T, S)."""
        return self.attend.weights


class CappedAttention(MultiHeadAttention):
    """Multi-head attention with head_h = softmax(cap tanh(q kᵀ scale / cap)) v.

    Shapes: query (B, T, D), key and value (B, S, D) -> y (B, T, D).

    Args:
        d_model: The width D.
        n_heads: The number H of heads.
        cap: The largest size of a score.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        settings: The other settings of MultiHeadAttention.

    Raises:
        UserError: As MultiHeadAttention.

    Source: Gemma team 2024, "Gemma 2", section 2.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        cap: float = 50.0,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
        **settings: Any,
    ) -> None:
        super().__init__(d_model, n_heads, rng=default_rng(rng), dtype=dtype, **settings)
        self.cap = cap

    def attend(
        self, q: Array, k: Array, v: Array, mask: AttentionMask = EVERYTHING, context: Context = INFERENCE
    ) -> tuple[Array, CappedAttentionCache]:
        """Compute the attention of each head.

        Args:
            q: The queries, of shape (B, H, T, K).
            k: The keys, of shape (B, H, S, K).
            v: The values, of shape (B, H, S, L).
            mask: The masks.
            context: The settings of the forward pass.

        Returns:
            z, of shape (B, H, T, L), and the cache.
        """
        scores, cap_cache = soft_cap(q @ k.swapaxes(-1, -2) * self.factor, self.cap)  # (B, H, T, S)
        p = context.dropout(self.dropout)
        z, attend_cache = attend(scores, v, mask.pairs, p=p, rng=context.rng)  # (B, H, T, L)
        return z, CappedAttentionCache(q, k, cap_cache, attend_cache)

    def attend_backward(self, dz: Array, cache: CappedAttentionCache) -> tuple[Array, Array, Array]:
        """Return the gradients dq (B, H, T, K), dk (B, H, S, K) and dv (B, H, S, L)."""
        # z = softmax(scores) v
        dscores, dv = attend_backward(dz, cache.attend)
        # scores = soft_cap(q kᵀ scale)
        dscores = soft_cap_backward(dscores, cache.cap) * self.factor
        dq, dk = dscores @ cache.k, dscores.swapaxes(-1, -2) @ cache.q
        return sum_to_shape(dq, cache.q.shape), sum_to_shape(dk, cache.k.shape), dv
