"""Decoding with a KV cache: the positions one after another, each key and value computed only once.

The memory is the encoder's output. Its keys and values, which are the same for every position of the decoder,
are called memory_kv.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.nn.context import AttentionMask
from npformer.nn.module import Module

NO_ROTATION = (
    "rotary positions need queries and keys of one sentence, and separate keys were given: leave out rotary "
    "for cross-attention"
)


class KVCache(NamedTuple):
    """The keys and values of a sequence of S positions, for each of the G heads that have their own.

    With rotary positions, the keys are rotated already.
    """

    k: Any  # (B, G, S, K)
    v: Any  # (B, G, S, L)

    @property
    def length(self) -> int:
        """The number S of positions."""
        return self.k.shape[2]

    def extended(self, k: Array, v: Array) -> KVCache:
        """Return these keys and values, followed by the keys k (B, G, T, K) and values v (B, G, T, L)."""
        xp = array_module(k)
        return KVCache(xp.concatenate([self.k, k], 2), xp.concatenate([self.v, v], 2))


class DecodingAttention(Module):
    """The base class of MultiHeadAttention with its methods for decoding.

    These methods return no cache for a backward pass.
    """

    query: Any
    rotary: Any
    project: Any  # this and the following methods are those of MultiHeadAttention
    rotate: Any
    share: Any
    attend: Any
    join: Any

    def decode_step(
        self, x: Array, kv_cache: KVCache | None = None, mask: Array | AttentionMask | None = None
    ) -> tuple[Array, KVCache]:
        """Compute self-attention for the next positions, which follow those of the KV cache.

        Args:
            x: The vectors of the next positions, of shape (B, T, D).
            kv_cache: The keys and values of the S positions before, or None at the first position.
            mask: Bool, broadcastable to (B, H, T, S + T). True means that the query may attend to the key.
                The default allows all keys, which is right for T = 1. For more positions, or for a window,
                give causal_mask(T, x, window=window, start=S).

        Returns:
            y, of shape (B, T, D), and the keys and values of all S + T positions.
        """
        (q, k, v), _ = self.project(x, x, x)
        q, k, _ = self.rotate(q, k, start=0 if kv_cache is None else kv_cache.length)
        kv_cache = KVCache(k, v) if kv_cache is None else kv_cache.extended(k, v)
        return self._attend(q, kv_cache, mask), kv_cache

    def project_memory(self, memory: Array) -> KVCache:
        """Return the keys and values of the memory (B, S, D), which are computed once for each sentence.

        Raises:
            UserError: If the layer has rotary positions.
        """
        if self.rotary is not None:
            raise UserError(NO_ROTATION)
        (_, k, v), _ = self.project(memory[:, :0], memory, memory)  # no queries yet
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
        (q,), _ = self.query.project(x)
        return self._attend(q, memory_kv, mask)

    def _attend(self, q: Array, kv_cache: KVCache, mask: Array | AttentionMask | None) -> Array:
        z, _ = self.attend(q, self.share(kv_cache.k), self.share(kv_cache.v), AttentionMask.of(mask))
        y, _ = self.join(z)
        return y
