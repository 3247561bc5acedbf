"""QKNormAttention: multi-head attention whose queries and keys are normalized."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.packing import Packing
from npformer.functional.qk_norm import QKNormCache, qk_norm, qk_norm_backward
from npformer.nn.attention.multi_head import MultiHeadAttention, MultiHeadCache
from npformer.nn.attention.projections import ProjectionCache
from npformer.nn.init import default_rng
from npformer.nn.module import Parameter


@cache_class
class NormedProjectionsCache(NamedTuple):
    """The cache of QKNormAttention.project. It is the field `projections` of the MultiHeadCache."""

    projections: tuple[ProjectionCache, ...]
    query: QKNormCache
    key: QKNormCache


class QKNormAttention(MultiHeadAttention):
    """Multi-head attention with QK-norm, between the projections and the rotation by positions.

        head_h = attention(rotate(norm(query Wq_h)), rotate(norm(key Wk_h)), value Wv_h)

    Shapes: query (B, T, D), key and value (B, S, D) -> y (B, T, D).

    Args:
        d_model: The width D.
        n_heads: The number H of heads.
        whole: Normalize all heads of a token together, with a gain for each number of the whole projection.
            Otherwise each head is normalized by itself, and all share a gain.
        eps: The eps of the norms.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        settings: The other settings of MultiHeadAttention.

    Raises:
        UserError: As MultiHeadAttention.

    Source: Henry et al. 2020; Dehghani et al. 2023, section 2.1.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        whole: bool = False,
        eps: float = 1e-6,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
        **settings: Any,
    ) -> None:
        super().__init__(d_model, n_heads, rng=default_rng(rng), dtype=dtype, **settings)
        self.eps = eps
        self.query_gain = Parameter(np.ones(self.d_head * (n_heads if whole else 1), dtype))
        self.key_gain = Parameter(np.ones(self.d_head * (self.n_kv_heads if whole else 1), dtype))

    def project(
        self,
        query: Array,
        key: Array,
        value: Array,
        packing: Packing | None = None,
        key_packing: Packing | None = None,
    ) -> tuple[list[Array], Any]:
        """Compute the queries, keys and values of all heads, and normalize the queries and keys.

        Args:
            query: The input of the queries, of shape (B, T, D), or packed rows (N, D).
            key: The input of the keys, of shape (B, S, D), or packed rows.
            value: The input of the values, of shape (B, S, D), or packed rows.
            packing: The packing of the queries, or None.
            key_packing: The packing of the keys and values, or None.

        Returns:
            The list [q, k, v] of shapes (B, H, T, K), (B, G, S, K) and (B, G, S, L), and the cache.
        """
        (q, k, v), caches = super().project(query, key, value, packing, key_packing)
        q, q_cache = qk_norm(q, self.query_gain.value, self.eps)
        k, k_cache = qk_norm(k, self.key_gain.value, self.eps)
        return [q, k, v], NormedProjectionsCache(caches, q_cache, k_cache)

    def project_query(self, x: Array) -> Array:
        """Return the normalized queries of cross-attention, of shape (B, H, T, K)."""
        q, _ = qk_norm(super().project_query(x), self.query_gain.value, self.eps)
        return q

    def project_backward(self, dq: Array, dk: Array, dv: Array, cache: MultiHeadCache) -> list[Array]:
        """Compute the gradients of the inputs of the projections.

        Args:
            dq: The gradient of the normalized queries, of shape (B, H, T, K).
            dk: The gradient of the normalized keys, of shape (B, G, S, K).
            dv: The gradient of the values, of shape (B, G, S, L).
            cache: The cache of forward.

        Returns:
            The gradient of the input of each projection.
        """
        normed: Any = cache.projections
        # q = qk_norm(q), k = qk_norm(k)
        dq, dquery_gain = qk_norm_backward(dq, normed.query)
        dk, dkey_gain = qk_norm_backward(dk, normed.key)
        self.query_gain.accumulate(dquery_gain)
        self.key_gain.accumulate(dkey_gain)
        return super().project_backward(dq, dk, dv, cache._replace(projections=normed.projections))
