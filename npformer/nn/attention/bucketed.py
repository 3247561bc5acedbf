"""BucketedAttention: multi-head self-attention with the relative bias of T5."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.attend import AttendCache, attend, attend_backward
from npformer.functional.caches import cache_class
from npformer.functional.relative_bias import (
    RelativeBiasCache,
    relative_bias,
    relative_bias_backward,
    relative_buckets,
)
from npformer.nn.attention.multi_head import MultiHeadAttention
from npformer.nn.context import EVERYTHING, INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng, normal
from npformer.nn.module import Parameter
from npformer.validation import require_counts


@cache_class
class BucketedAttentionCache(NamedTuple):
    """The cache of BucketedAttention.attend. It is the field `attention` of the MultiHeadCache."""

    q: Array  # (B, H, T, K)
    k: Array  # (B, H, S, K)
    bias: RelativeBiasCache
    attend: AttendCache

    @property
    def weights(self) -> Array:
        """The attention weights, (B, H, T, S)."""
        return self.attend.weights


class BucketedAttention(MultiHeadAttention):
    """Multi-head self-attention with head_h = softmax(q kᵀ scale + bias_h) v.

    bias_h is a learned number for each bucket of distances (see functional.relative_bias). Layers may share
    the table of these numbers. In decoding, the new tokens follow the tokens of the KV cache.
    Shapes: x (B, T, D), mask bool, broadcastable to (B, H, T, T) -> y (B, T, D).

    Args:
        d_model: The width D.
        n_heads: The number H of heads.
        n_buckets: The number N of buckets.
        max_distance: From this distance on, all distances share a bucket.
        both_sides: True for an encoder, False for a decoder, whose queries see no keys after them.
        table: The table of another layer, of shape (N, H), which this one shares. The default is a new one.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        settings: The other settings of MultiHeadAttention.

    Raises:
        UserError: As MultiHeadAttention; if the buckets are too few or max_distance is too small for them; or
            if key or value is given.

    Source: Raffel et al. 2020, section 2.1.
    """

    uses_query_index = True  # for its distance from each key

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_buckets: int = 32,
        max_distance: int = 128,
        both_sides: bool = True,
        table: Parameter | None = None,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
        **settings: Any,
    ) -> None:
        check_buckets(n_buckets, max_distance)
        rng = default_rng(rng)
        super().__init__(d_model, n_heads, rng=rng, dtype=dtype, **settings)
        self.buckets: dict[str, Any] = {
            "n_buckets": n_buckets,
            "max_distance": max_distance,
            "both_sides": both_sides,
        }
        if table is None:
            table = Parameter(normal(rng, (n_buckets, n_heads), d_model**-0.5, dtype))
        self.table = table

    def attend(
        self, q: Array, k: Array, v: Array, mask: AttentionMask = EVERYTHING, context: Context = INFERENCE
    ) -> tuple[Array, BucketedAttentionCache]:
        """Compute the attention of each head.

        Args:
            q: The queries, of shape (B, H, T, K). If T < S, they are at the last T of the S positions.
            k: The keys, of shape (B, H, S, K).
            v: The values, of shape (B, H, S, L).
            mask: The masks.
            context: The settings of the forward pass.

        Returns:
            z, of shape (B, H, T, L), and the cache.
        """
        n_queries, n_keys = q.shape[-2], k.shape[-2]
        buckets = relative_buckets(n_queries, n_keys, q, start=n_keys - n_queries, **self.buckets)  # (T, S)
        bias, bias_cache = relative_bias(self.table.value, buckets)  # (H, T, S)
        scores = q @ k.swapaxes(-1, -2) * self.factor + bias  # (B, H, T, S)
        p = context.dropout(self.dropout)
        z, attend_cache = attend(scores, v, mask.pairs, p=p, rng=context.rng)  # (B, H, T, L)
        return z, BucketedAttentionCache(q, k, bias_cache, attend_cache)

    def attend_backward(self, dz: Array, cache: BucketedAttentionCache) -> tuple[Array, Array, Array]:
        """Return the gradients dq (B, H, T, K), dk (B, H, S, K) and dv (B, H, S, L)."""
        # z = softmax(scores) v
        dscores, dv = attend_backward(dz, cache.attend)  # (B, H, T, S)
        # scores = q kᵀ scale + bias: all sentences had the same bias
        self.table.accumulate(relative_bias_backward(dscores.sum(0), cache.bias))
        dscores = dscores * self.factor
        return dscores @ cache.k, dscores.swapaxes(-1, -2) @ cache.q, dv

    def check_cross_attention(self) -> None:
        """Raise an error: there is no distance between the tokens of two sentences.

        Raises:
            UserError: Always.
        """
        raise UserError(
            "a relative bias needs queries and keys of one sentence, and separate keys were given: use "
            "MultiHeadAttention for cross-attention"
        )


def check_buckets(n_buckets: int, max_distance: int) -> None:
    """Raise UserError unless there are 4 buckets or more, and max_distance is larger than half of them."""
    require_counts(n_buckets=n_buckets, max_distance=max_distance)
    if n_buckets < 4 or max_distance <= n_buckets // 2:
        raise UserError(
            f"n_buckets is {n_buckets} and max_distance {max_distance}: give at least 4 buckets, and a "
            "larger distance than half of their number"
        )
