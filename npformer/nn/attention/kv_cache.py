"""Decoding with a KV cache: the positions one after another, each key and value computed only once.

The memory is the encoder's output. Its keys and values, which are the same for every position of the decoder,
are called memory_kv.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module, like, to_numpy
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


class PreallocatedKVCache:
    """The keys and values of a sequence, in arrays with room for those of later positions.

    A step of decoding writes its keys and values into this room and copies nothing else. So there is one
    cache for all steps, while each step of a KVCache makes a new one.

    Args:
        capacity: The largest number of positions.

    Attributes:
        length: The number of positions so far: one number for all sentences, or an array (B,) on the host
            with one number for each sentence.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length: int | Array = 0
        self._k: Any = None  # (B, G, capacity, K), allocated when the shapes are known
        self._v: Any = None  # (B, G, capacity, L)

    @property
    def longest(self) -> int:
        """The number S of positions of the longest sentence."""
        return self.length if isinstance(self.length, int) else int(self.length.max())

    @property
    def k(self) -> Array:
        """A view of the keys, of shape (B, G, S, K)."""
        return self._k[:, :, : self.longest]

    @property
    def v(self) -> Array:
        """A view of the values, of shape (B, G, S, L)."""
        return self._v[:, :, : self.longest]

    @property
    def nbytes(self) -> int:
        """The number of bytes of the arrays, with their room for later positions."""
        return 0 if self._k is None else int(self._k.nbytes + self._v.nbytes)

    def extended(self, k: Array, v: Array) -> PreallocatedKVCache:
        """Write the keys k (B, G, T, K) and values v (B, G, T, L) of the next T positions, and return self.

        Raises:
            UserError: If there is no room for them.
        """
        n_new = k.shape[2]
        if self.longest + n_new > self.capacity:
            raise UserError(
                f"the KV cache has room for {self.capacity} positions, and {self.longest + n_new} are "
                "needed: make it larger"
            )
        if self._k is None:
            self._k, self._v = _allocate(k, self.capacity), _allocate(v, self.capacity)
        if isinstance(self.length, int):
            new = slice(self.length, self.length + n_new)
            self._k[:, :, new], self._v[:, :, new] = k, v
        else:
            rows = like(np.arange(len(self.length))[:, None], k)  # (B, 1)
            new_of_row = like(self.length[:, None] + np.arange(n_new), k)  # (B, T)
            # the slice stands between two arrays of indices, so the axes of these, (B, T), come first
            self._k[rows, :, new_of_row], self._v[rows, :, new_of_row] = k.swapaxes(1, 2), v.swapaxes(1, 2)
        self.length = self.length + n_new
        return self

    def take_rows(self, rows: Array) -> PreallocatedKVCache:
        """Return a new cache with the chosen sentences, which may be reordered or repeated.

        Shapes: rows (R,) integers.
        """
        taken = PreallocatedKVCache(self.capacity)
        if self._k is not None:
            taken.extended(self.k[rows], self.v[rows])
            taken.length = self.length if isinstance(self.length, int) else self.length[to_numpy(rows)]
        return taken


def _allocate(x: Array, capacity: int) -> Array:
    """Return an array (B, G, capacity, K) for keys or values like x (B, G, T, K).

    It is filled with zeros, since the positions between a shorter sentence and the longest one are read, and
    a weight of 0 times a number that is not finite is not 0.
    """
    batch, n_heads, _, width = x.shape
    return array_module(x).zeros((batch, n_heads, capacity, width), x.dtype)


class DecodingAttention(Module):
    """The base class of MultiHeadAttention with its methods for decoding.

    These methods return no cache for a backward pass.
    """

    query: Any
    rotary: Any
    uses_query_index = False  # True if the scores depend on the index of a query, and not on its vector only
    project: Any  # this and the following methods are those of MultiHeadAttention
    rotate: Any
    share: Any
    attend: Any
    join: Any

    def decode_step(
        self,
        x: Array,
        kv_cache: KVCache | PreallocatedKVCache | None = None,
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

    def _attend(
        self, q: Array, kv_cache: KVCache | PreallocatedKVCache, mask: Array | AttentionMask | None
    ) -> Array:
        mask = AttentionMask.of(mask)
        if q.shape[2] == 1 and not self.uses_query_index:
            z = self._attend_shared(q, kv_cache, mask)
        else:
            z, _ = self.attend(q, self.share(kv_cache.k), self.share(kv_cache.v), mask)
        y, _ = self.join(z)
        return y

    def _attend_shared(self, q: Array, kv_cache: KVCache | PreallocatedKVCache, mask: AttentionMask) -> Array:
        """Compute the attention of one position without copies of the keys and values for each query head.

        The R query heads that share a head of keys become R queries of one head.
        Shapes: q (B, H, 1, K) -> z (B, H, 1, L).
        """
        batch, n_heads, _, width = q.shape
        n_groups = kv_cache.k.shape[1]
        allowed = mask.allowed
        if allowed is not None and allowed.ndim > 2 and allowed.shape[-3] > 1:  # a mask for each query head
            allowed = allowed.reshape(*allowed.shape[:-3], n_groups, n_heads // n_groups, allowed.shape[-1])
        q = q.reshape(batch, n_groups, n_heads // n_groups, width)  # (B, G, R, K)
        z, _ = self.attend(q, kv_cache.k, kv_cache.v, replace(mask, allowed=allowed))  # (B, G, R, L)
        return z.reshape(batch, n_heads, 1, z.shape[-1])
