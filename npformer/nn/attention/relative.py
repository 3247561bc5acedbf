"""Multi-head self-attention with relative positions: Shaw et al. 2018."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.relative import (
    ByDistanceCache,
    relative_attention_by_distance,
    relative_attention_by_distance_backward,
)
from npformer.nn.attention.multi_head import MultiHeadAttention
from npformer.nn.context import EVERYTHING, INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng, xavier_uniform
from npformer.nn.module import Parameter
from npformer.validation import require_count


class RelativeAttention(MultiHeadAttention):
    """Self-attention with learned vectors of distances, which are added to the keys and to the values.

        e_ij = x_i Wq (x_j Wk + aK_ij)ᵀ / sqrt(K),  z_i = Σ_j softmax_j(e_ij) (x_j Wv + aV_ij)

    aK_ij and aV_ij are the vectors of the distance j - i. A distance above max_distance uses the vector of
    max_distance, and likewise in the other direction. So there are 2 max_distance + 1 vectors. All heads
    share them. There is no cross-attention, since there is no distance between the tokens of two sentences.
    In decoding, the new tokens follow the tokens of the KV cache. Shapes: x (B, T, D), mask bool,
    broadcastable to (B, H, T, T) -> y (B, T, D).

    Args:
        d_model: The width D.
        n_heads: The number H of heads.
        max_distance: The largest distance that has its own vector.
        on_keys: Add the vectors aK to the keys.
        on_values: Add the vectors aV to the values.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        settings: The other settings of MultiHeadAttention.

    Raises:
        UserError: If a setting is impossible, if the shapes of the arrays do not agree, if a mask has another
            dtype or shape, if max_distance is not a positive integer, or if key or value is given.

    Source: Shaw et al. 2018, section 3.
    """

    uses_query_index = True  # for its distance from each key

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        max_distance: int = 16,
        on_keys: bool = True,
        on_values: bool = True,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
        **settings: Any,
    ) -> None:
        require_count("max_distance", max_distance)
        rng = default_rng(rng)
        super().__init__(d_model, n_heads, rng=rng, dtype=dtype, **settings)
        self.max_distance = max_distance

        def vectors(wanted: bool, width: int) -> Parameter | None:
            shape = (2 * max_distance + 1, width)  # for the distances -max_distance .. max_distance
            return Parameter(xavier_uniform(rng, shape, dtype)) if wanted else None

        self.key_positions = vectors(on_keys, self.d_head)
        self.value_positions = vectors(on_values, self.d_value)

    def attend(
        self, q: Array, k: Array, v: Array, mask: AttentionMask = EVERYTHING, context: Context = INFERENCE
    ) -> tuple[Array, ByDistanceCache]:
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
        key_positions, value_positions = (
            None if p is None else p.value for p in (self.key_positions, self.value_positions)
        )
        return relative_attention_by_distance(
            q,
            k,
            v,
            key_positions,
            value_positions,
            mask.pairs,
            start=k.shape[-2] - q.shape[-2],
            scale=self.scale,
            p=context.dropout(self.dropout),
            rng=context.rng,
        )

    def attend_backward(self, dz: Array, cache: ByDistanceCache) -> tuple[Array, Array, Array]:
        """Return the gradients dq (B, H, T, K), dk (B, H, S, K) and dv (B, H, S, L)."""
        dq, dk, dv, dkey_positions, dvalue_positions = relative_attention_by_distance_backward(dz, cache)
        if self.key_positions is not None:
            self.key_positions.accumulate(dkey_positions)
        if self.value_positions is not None:
            self.value_positions.accumulate(dvalue_positions)
        return dq, dk, dv

    def check_cross_attention(self) -> None:
        """Raise an error: there is no distance between the tokens of two sentences.

        Raises:
            UserError: Always.
        """
        raise UserError(
            "relative positions need queries and keys of one sentence, and separate keys were given: use "
            "MultiHeadAttention for cross-attention"
        )
