"""Decoding with multi-head attention: the keys and values of earlier positions come from a KV cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.heads import merge_heads, repeat_heads
from npformer.nn.attention.checks import check_inputs
from npformer.nn.attention.kv_cache import KVCache, PreallocatedKVCache
from npformer.nn.context import AttentionMask

if TYPE_CHECKING:
    from npformer.nn.attention.projections import Projection
    from npformer.nn.linear import Linear
    from npformer.nn.positions import RotaryPositions

AnyKVCache = KVCache | PreallocatedKVCache


class AttentionDecoding:
    """The methods of MultiHeadAttention for decoding. They keep nothing for a backward pass."""

    uses_query_index = False  # True if the scores depend on the index of a query, and not on its vector only
    n_kv_heads: int
    d_inputs: tuple[int, int, int]
    n_repeats: int
    rotary: RotaryPositions | None
    output: Linear | None
    query: Projection
    project: Callable[..., Any]
    attend: Callable[..., Any]

    def decode_step(
        self,
        x: Array,
        kv_cache: AnyKVCache | None = None,
        mask: Array | AttentionMask | None = None,
    ) -> tuple[Array, Any]:
        """Compute self-attention for the next positions, which follow those of the KV cache.

        Args:
            x: The vectors of the next positions, of shape (B, T, D).
            kv_cache: The keys and values of the S positions before. None at the first position begins a
                KVCache, and an empty PreallocatedKVCache is extended in place.
            mask: Bool, broadcastable to (B, H, T, S + T). True means that the query may attend to the key.
                The default allows all keys, which is right for T = 1. For more positions, or for a window,
                give causal_mask(T, x, window=window, start=S).

        Returns:
            y, of shape (B, T, D), and the keys and values of all S + T positions.
        """
        (q, k, v), _ = self.project(x, x, x)
        if self.rotary is not None:
            start = 0 if kv_cache is None else kv_cache.length
            q, k = self.rotary(q, start), self.rotary(k, start)
        kv_cache = KVCache(k, v) if kv_cache is None else kv_cache.extended(k, v)
        return self._attend(q, kv_cache, mask), kv_cache

    def project_memory(self, memory: Array) -> KVCache:
        """Return the keys and values of the memory (B, S, D), which are computed once for each sentence.

        Raises:
            UserError: If the layer computes self-attention only.
        """
        check_inputs(self, memory, None)
        no_queries = array_module(memory).zeros((len(memory), 0, self.d_inputs[0]), memory.dtype)  # (B, 0, D)
        (_, k, v), _ = self.project(no_queries, memory, memory)
        return KVCache(k, v)

    def attend_memory(self, x: Array, memory_kv: KVCache, mask: Array | AttentionMask | None = None) -> Array:
        """Compute the cross-attention of x to the memory.

        Args:
            x: The vectors of the decoder, of shape (B, T, D).
            memory_kv: The result of project_memory.
            mask: Bool, broadcastable to (B, H, T, S). True means that the query may attend to the key.

        Returns:
            y, of shape (B, T, D).
        """
        return self._attend(self.project_query(x), memory_kv, mask)

    def project_query(self, x: Array) -> Array:
        """Return the queries of cross-attention, of shape (B, H, T, K), for x of shape (B, T, D)."""
        (q,), _ = self.query.project(x)
        return q

    def _attend(self, q: Array, kv_cache: AnyKVCache, mask: Array | AttentionMask | None) -> Array:
        """Return y, of shape (B, T, D), for the queries q (B, H, T, K)."""
        mask = AttentionMask.of(mask)
        if self.n_repeats > 1 and q.shape[2] == 1 and not self.uses_query_index:
            z = self._attend_shared(q, kv_cache, mask)
        else:
            k, _ = repeat_heads(kv_cache.k, self.n_repeats)
            v, _ = repeat_heads(kv_cache.v, self.n_repeats)
            z, _ = self.attend(q, k, v, mask)
        y = merge_heads(z)
        return y if self.output is None else self.output(y)

    def _attend_shared(self, q: Array, kv_cache: AnyKVCache, mask: AttentionMask) -> Array:
        """Compute the attention of one position without copies of the keys and values for each query head.

        The R query heads that share a head of keys become R queries of one head.
        Shapes: q (B, H, 1, K) -> z (B, H, 1, L).
        """
        batch, n_heads, _, width = q.shape
        groups, pairs = (self.n_kv_heads, self.n_repeats), mask.pairs
        if pairs is not None and pairs.ndim == 4 and pairs.shape[1] > 1:  # a mask for each query head
            pairs = pairs.reshape(len(pairs), *groups, pairs.shape[-1])
        q = q.reshape(batch, *groups, width)  # (B, G, R, K)
        z, _ = self.attend(q, kv_cache.k, kv_cache.v, AttentionMask(pairs))  # (B, G, R, L)
        return z.reshape(batch, n_heads, 1, z.shape[-1])

    def check_cross_attention(self) -> None:
        """Check that keys and values may come from another sentence than the queries.

        Raises:
            UserError: If the layer has rotary positions, which need the positions of one sentence.
        """
        if self.rotary is not None:
            raise UserError(
                "rotary positions need queries and keys of one sentence, and separate keys were given: leave "
                "out rotary for cross-attention"
            )
