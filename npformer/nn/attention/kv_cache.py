"""KV caches for decoding: the positions come one after another, each key and value is computed only once.

The memory is the encoder's output. Its keys and values, which are the same for every position of the decoder,
are called memory_kv.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module, like, to_numpy
from npformer.errors import UserError


class KVCache(NamedTuple):
    """The keys and values of a sequence of S positions, for each of the G heads that have their own.

    With rotary positions, the keys are rotated already.
    """

    k: Array  #: (B, G, S, K)
    v: Array  #: (B, G, S, L)

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
