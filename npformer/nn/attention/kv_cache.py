"""Decoding with a KV cache: one position after another, without computing a key or a value twice."""

from __future__ import annotations

from typing import Any, NamedTuple

from npformer.backend import Array, array_module
from npformer.nn.context import AttentionMask
from npformer.nn.module import Module


class KVCache(NamedTuple):
    """The keys and values of all positions so far."""

    k: Any  # (B, H, S, K)
    v: Any  # (B, H, S, L)

    def extended(self, k: Array, v: Array) -> KVCache:
        """Return these keys and values, followed by those of the next positions."""
        xp = array_module(k)
        return KVCache(xp.concatenate([self.k, k], 2), xp.concatenate([self.v, v], 2))


class DecodingAttention(Module):
    """The decoding methods of MultiHeadAttention. They return no cache for a backward pass."""

    query: Any

    def decode_step(
        self, x: Array, kv_cache: KVCache | None = None, mask: Array | AttentionMask | None = None
    ) -> tuple[Array, KVCache]:
        """Compute self-attention for the next positions, which follow those of the KV cache.

        Args:
            x: The vectors of the next positions, of shape (B, T, D).
            kv_cache: The keys and values of the S positions before, or None.
            mask: Bool, broadcastable to (B, H, T, S + T). True means that the query may attend to the key.

        Returns:
            y, of shape (B, T, D), and the keys and values of all S + T positions.
        """
        (q, k, v), _ = self.project(x, x, x)
        kv_cache = KVCache(k, v) if kv_cache is None else kv_cache.extended(k, v)
        return self._attend(q, kv_cache, mask), kv_cache

    def project_memory(self, memory: Array) -> KVCache:
        """Return the keys and values of the encoder's output (B, S, D), computed once for each sentence."""
        (_, k, v), _ = self.project(memory[:, :0], memory, memory)  # no queries yet
        return KVCache(k, v)

    def attend_memory(self, x: Array, memory: KVCache, mask: Array | AttentionMask | None = None) -> Array:
        """Compute the cross-attention of x to the memory. Shapes: x (B, T, D) -> y (B, T, D)."""
        (q,), _ = self.query.project(x)
        return self._attend(q, memory, mask)

    def _attend(self, q: Array, kv_cache: KVCache, mask: Array | AttentionMask | None) -> Array:
        z, _ = self.attend(q, kv_cache.k, kv_cache.v, AttentionMask.of(mask))
        y, _ = self.join(z)
        return y

    def project(self, query: Array, key: Array, value: Array) -> Any:
        """Return ((q, k, v), cache)."""
        raise NotImplementedError

    def attend(self, q: Array, k: Array, v: Array, mask: AttentionMask) -> tuple[Array, Any]:
        """Return (z, cache)."""
        raise NotImplementedError

    def join(self, z: Array) -> tuple[Array, Any]:
        """Return (y, cache)."""
        raise NotImplementedError
