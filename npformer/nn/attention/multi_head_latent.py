"""MultiHeadLatentAttention: keys and values that are computed from a short latent vector of each token.

DeepSeek-V2 calls it multi-head latent attention. It has nothing in common with LatentAttention, a layer with
two softmaxes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.heads import join_shared, join_shared_backward, merge_heads
from npformer.functional.linear import LinearCache
from npformer.functional.packing import Packing
from npformer.functional.rms_norm import RMSNormCache
from npformer.kernels import rotate
from npformer.nn.attention.decoding import AnyKVCache
from npformer.nn.attention.kv_cache import KVCache
from npformer.nn.attention.multi_head import MultiHeadAttention, MultiHeadCache
from npformer.nn.attention.projections import Projection, ProjectionCache
from npformer.nn.context import AttentionMask
from npformer.nn.init import default_rng
from npformer.nn.linear import Linear
from npformer.nn.module import Module
from npformer.nn.norm import RMSNorm
from npformer.nn.positions import RotaryPositions
from npformer.validation import require_counts


@cache_class
class CompressionCache(NamedTuple):
    """The cache of Compression."""

    linear: LinearCache
    norm: RMSNormCache


class Compression(Module):
    """A linear map to a latent vector that is shorter than x, and a norm: c = norm(x W).

    Shapes: x (..., D) -> c (..., C).

    Args:
        d_model: The width D.
        d_latent: The width C.
        eps: The eps of the norm.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self, d_model: int, d_latent: int, *, eps: float, rng: np.random.Generator | None, dtype: Any
    ) -> None:
        self.linear = Linear(d_model, d_latent, bias=False, rng=rng, dtype=dtype)
        self.norm = RMSNorm(d_latent, eps=eps, dtype=dtype)

    def forward(self, x: Array) -> tuple[Array, CompressionCache]:
        """Return c, of shape (..., C), and the cache."""
        c, linear_cache = self.linear.forward(x)
        c, norm_cache = self.norm.forward(c)
        return c, CompressionCache(linear_cache, norm_cache)

    def backward(self, dc: Array, cache: CompressionCache) -> Array:
        """Return dx, of shape (..., D)."""
        # c = norm(linear(x))
        return self.linear.backward(self.norm.backward(dc, cache.norm), cache.linear)


@cache_class
class LatentProjectionsCache(NamedTuple):
    """The cache of MultiHeadLatentAttention.project. It is the field `projections` of the MultiHeadCache."""

    query_latent: Any  # a CompressionCache, or None
    query: ProjectionCache
    latent: CompressionCache
    key_value: ProjectionCache
    key_rotary: ProjectionCache
    shared: int  # the width R of the columns that all keys of a token share


class MultiHeadLatentAttention(MultiHeadAttention):
    """Self-attention whose KV cache keeps one short latent vector and one rotated key for each token.

        c = norm(x W),  k_h = [rotate(x Wr); c Wk_h],  v_h = c Wv_h,  q_h = [rotate(x Wqr_h); x Wq_h]
        y = Concat(head_1 .. head_H) Wo,  head_h = attention(q_h, k_h, v_h)

    All heads compute their keys and values from the same latent vector c, of width C. If keys were rotated by
    their positions after the product with Wk_h, this product could not be left out in decoding. So a second
    part of the keys and queries, of width R, has the positions. All heads share this part of a key.

    In decoding, keys and values are never computed: q · (c Wk) = (q Wkᵀ) · c, so Wk is absorbed by the query,
    and Σ w (c Wv) = (Σ w c) Wv. The heads then attend to the cached vectors [rotate(x Wr); c] themselves, as
    in multi-query attention. The linear maps before the attention have no biases.
    Shapes: x (B, T, D) -> y (B, T, D).

    Args:
        d_model: The width D.
        n_heads: The number H of heads.
        d_latent: The width C of the latent vectors.
        rotary: The rotation of the first R columns of heads with R + K columns. It decides R.
        d_query_latent: The width of a latent vector from which the queries are computed. The default is None:
            they are computed from x.
        d_head: The width K of the other part of the queries and keys. The default is d_model / n_heads.
        d_value: The width L of the values of a head. The default is d_head.
        eps: The eps of the norms of the latent vectors.
        dropout: The dropout probability of the attention weights.
        output_bias: Add a bias to the product with Wo.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If a setting is impossible, or as MultiHeadAttention.

    Source: DeepSeek-AI 2024, "DeepSeek-V2", sections 2.1.2 and 2.1.3, and appendix C.
    """

    rotary: RotaryPositions

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_latent: int,
        rotary: RotaryPositions,
        d_query_latent: int | None = None,
        d_head: int | None = None,
        d_value: int | None = None,
        eps: float = 1e-6,
        dropout: float = 0.0,
        output_bias: bool = False,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_counts(d_model=d_model, n_heads=n_heads, d_latent=d_latent)
        others = {"d_head": d_head, "d_query_latent": d_query_latent}
        require_counts(**{name: size for name, size in others.items() if size is not None})
        d_head = d_model // n_heads if d_head is None else d_head
        d_rotary = 2 * rotary.cos.shape[-1]
        if rotary.d_head != d_rotary + d_head:
            raise UserError(
                f"the rotation is made for heads of {rotary.d_head} columns, and they have {d_rotary} rotated"
                f" ones and {d_head} others: make it with d_head {d_rotary + d_head}"
            )
        self.widths = d_rotary, d_head, d_latent, d_query_latent  # R, K, C and that of queries, or None
        self.eps = eps
        super().__init__(
            d_model,
            n_heads,
            d_head=d_rotary + d_head,
            d_value=d_head if d_value is None else d_value,
            bias=False,
            output_bias=output_bias,
            dropout=dropout,
            rotary=rotary,
            rng=default_rng(rng),
            dtype=dtype,
        )
        self.scale = self.d_head**-0.5  # in decoding, too, where the absorbed queries have R + C columns

    def _make_projections(self, **settings: Any) -> None:
        """Make the maps to the latent vectors, to the queries, and from the latent vector to the heads."""
        d_rotary, d_head, d_latent, d_query_latent = self.widths
        d_model, heads = self.d_inputs[0], self.n_heads
        small = {"eps": self.eps, "rng": settings["rng"], "dtype": settings["dtype"]}
        self.query_latent = None
        if d_query_latent is not None:
            self.query_latent = Compression(d_model, d_query_latent, **small)
        self.query = Projection(d_query_latent or d_model, [heads * self.d_head], [heads], **settings)
        self.latent = Compression(d_model, d_latent, **small)
        self.key_value = Projection(d_latent, [heads * d_head, heads * self.d_value], [heads] * 2, **settings)
        self.key_rotary = Projection(d_model, [d_rotary], [1], **settings)

    @property
    def projections(self) -> list[Projection]:
        """The projections to queries, keys and values, each from an input of its own."""
        return [self.query, self.key_rotary, self.key_value]

    def project(
        self,
        query: Array,
        key: Array,
        value: Array,
        packing: Packing | None = None,
        key_packing: Packing | None = None,
    ) -> tuple[list[Array], Any]:
        """Compute the queries, keys and values of all heads, before the rotation.

        Args:
            query: The input x, of shape (B, T, D), or packed rows (N, D).
            key: The same array.
            value: The same array.
            packing: The packing of x, or None.
            key_packing: The same packing.

        Returns:
            The list [q, k, v] of shapes (B, H, T, R + K), (B, H, T, R + K) and (B, H, T, L), and the cache.
        """
        q, query_caches = self._project_query(query, packing)
        c, latent_cache = self.latent.forward(key)  # (B, T, C)
        (k, v), key_value_cache = self.key_value.project(c, key_packing)  # (B, H, T, K) and (B, H, T, L)
        (shared,), key_rotary_cache = self.key_rotary.project(key, key_packing)  # (B, 1, T, R)
        k, width = join_shared(shared, k)
        return [q, k, v], LatentProjectionsCache(
            *query_caches, latent_cache, key_value_cache, key_rotary_cache, width
        )

    def project_backward(self, dq: Array, dk: Array, dv: Array, cache: MultiHeadCache) -> list[Array]:
        """Compute the gradient of x.

        Args:
            dq: The gradient of the queries before the rotation, of shape (B, H, T, R + K).
            dk: The gradient of the keys before the rotation, of shape (B, H, T, R + K).
            dv: The gradient of the values, of shape (B, H, T, L).
            cache: The cache of forward.

        Returns:
            A list with dx, of the shape of x.
        """
        caches: Any = cache.projections
        # k = [shared; k], shared = x Wr
        dshared, dk = join_shared_backward(dk, caches.shared)
        dx = self.key_rotary.project_backward([dshared], caches.key_rotary)
        # k, v = c Wk, c Wv and c = norm(x W)
        dc = self.key_value.project_backward([dk, dv], caches.key_value)
        dx = dx + self.latent.backward(dc, caches.latent)
        # q = x Wq, or q = c Wq with a latent vector of its own
        dquery = self.query.project_backward([dq], caches.query)
        if self.query_latent is not None:
            dquery = self.query_latent.backward(dquery, caches.query_latent)
        return [dx + dquery]

    def decode_step(
        self,
        x: Array,
        kv_cache: AnyKVCache | None = None,
        mask: Array | AttentionMask | None = None,
    ) -> tuple[Array, Any]:
        """Compute self-attention for the next positions in the absorbed form, without keys and values.

        Args:
            x: The vectors of the next positions, of shape (B, T, D).
            kv_cache: The KV cache of the S positions before, as MultiHeadAttention.decode_step takes it.
            mask: Bool, broadcastable to (B, H, T, S + T), as there.

        Returns:
            y, of shape (B, T, D), and the KV cache of all S + T positions. Its k, of shape
            (B, 1, S + T, R + C), has the rotated part of the keys and the latent vectors, and its v has no
            columns.
        """
        xp = array_module(x)
        q, _ = self._project_query(x)
        q, rotation = self.rotary.forward(q, 0 if kv_cache is None else kv_cache.length)
        (shared,), _ = self.key_rotary.project(x)  # (B, 1, T, R)
        new = xp.concatenate([shared, self.latent(x)[:, None]], -1)  # (B, 1, T, R + C)
        new, _ = rotate(new, *rotation)  # the first R columns, by the same positions
        nothing = new[..., :0]
        kv_cache = KVCache(new, nothing) if kv_cache is None else kv_cache.extended(new, nothing)
        return self._attend_absorbed(q, kv_cache.k, AttentionMask.of(mask)), kv_cache

    def _attend_absorbed(self, q: Array, cached: Array, mask: AttentionMask) -> Array:
        """Compute attention to the cached vectors [shared; c] themselves.

        Shapes: q (B, H, T, R + K), cached (B, 1, S, R + C) -> y (B, T, D).
        """
        d_rotary, d_head, d_latent, _ = self.widths
        weights = self.key_value.weight.value.reshape(d_latent, -1)  # (C, H·K + H·L)
        wk, wv = weights[:, : self.n_heads * d_head], weights[:, self.n_heads * d_head :]
        wk = wk.reshape(d_latent, self.n_heads, d_head).transpose(1, 2, 0)  # (H, K, C)
        wv = wv.reshape(d_latent, self.n_heads, self.d_value).swapaxes(0, 1)  # (H, C, L)
        # q · [shared; c Wk] = [q_R; q_K Wkᵀ] · [shared; c]
        q = array_module(q).concatenate([q[..., :d_rotary], q[..., d_rotary:] @ wk], -1)
        z, _ = self.attend(q, cached, cached[..., d_rotary:], mask)  # (B, H, T, C)
        y = merge_heads(z @ wv)  # Σ w (c Wv) = (Σ w c) Wv
        return y if self.output is None else self.output(y)

    def _project_query(self, x: Array, packing: Packing | None = None) -> tuple[Array, tuple[Any, Any]]:
        """Return the queries (B, H, T, R + K) before the rotation, and the two caches of their maps."""
        latent_cache = None
        if self.query_latent is not None:
            x, latent_cache = self.query_latent.forward(x)
        (q,), query_cache = self.query.project(x, packing)
        return q, (latent_cache, query_cache)
