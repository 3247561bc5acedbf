"""Multi-head attention with the masks of three introductions to the Transformer."""

from __future__ import annotations

from typing import Any

from npformer.backend import Array
from npformer.functional.tutorial_masks import (
    Masking,
    TutorialAttentionCache,
    tutorial_attention,
    tutorial_attention_backward,
)
from npformer.nn.attention.multi_head import MultiHeadAttention
from npformer.nn.context import EVERYTHING, INFERENCE, AttentionMask, Context


class TutorialAttention(MultiHeadAttention):
    """Multi-head attention for the presets jianshu-demo, datawhale and paperspace.

    The masks are bool as in MultiHeadAttention, but masked scores become large negative numbers.
    Shapes: query (B, T, D), key and value (B, S, D) -> y (B, T, D).

    Args:
        d_model: The width D.
        n_heads: The number H of heads.
        masking: The action of the masks on the scores (see Masking).
        settings: The other settings of MultiHeadAttention.
    """

    def __init__(self, d_model: int, n_heads: int, *, masking: Masking, **settings: Any) -> None:
        super().__init__(d_model, n_heads, **settings)
        self.masking = masking

    def attend(
        self, q: Array, k: Array, v: Array, mask: AttentionMask = EVERYTHING, context: Context = INFERENCE
    ) -> tuple[Array, TutorialAttentionCache]:
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
        return tutorial_attention(
            q,
            k,
            v,
            mask.allowed,
            self.masking,
            query_mask=mask.queries,
            scale=self.scale,
            p=context.dropout(self.dropout),
            rng=context.rng,
        )

    def attend_backward(self, dz: Array, cache: TutorialAttentionCache) -> tuple[Array, Array, Array]:
        """Return the gradients dq (B, H, T, K), dk (B, H, S, K) and dv (B, H, S, L)."""
        return tutorial_attention_backward(dz, cache)
