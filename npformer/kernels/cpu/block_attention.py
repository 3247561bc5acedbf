"""Attention with one mask for all sentences and heads, such as a causal one, for blocks of queries.

Keys to which no query of a block may attend are left out: with a causal mask, up to half of the products. The
exponentials are not divided by their sums. Instead, the outputs and their gradients are, which have K numbers
for each query and not S. The exponentials of short sentences are stored for the backward pass. Those of long
sentences are computed again, so that the memory is proportional to the length.

Source: Dao et al. 2022 (FlashAttention, for GPUs).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from npformer import functional as plain
from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.masks import check_mask
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.blocks import blocks, row_sums

QUERIES = 64  # the number of queries of a block
STORED = 1 << 16  # the largest number of scores of a head, 256 × 256, whose exponentials are stored
# For scores between -60 and 60, exp neither overflows nor underflows in float32, and neither does the sum of
# a thousand exponentials. So the maximum need not be subtracted.
SAFE = 60.0


class QueryBlock(NamedTuple):
    """A block of queries of a block of sentences, and the keys to which these queries may attend."""

    sentences: slice
    queries: slice
    keys: slice
    mask: Array | None  # bool, (t, s), or None if the queries may attend to all of these keys
    is_first: bool  # True if no part with these sentences came before
    has_all_keys: bool

    @property
    def at_queries(self) -> tuple[slice, slice, slice]:
        """The index of the queries in an array (B, H, T, ...)."""
        return self.sentences, slice(None), self.queries

    @property
    def at_keys(self) -> tuple[slice, slice, slice]:
        """The index of the keys in an array (B, H, S, ...)."""
        return self.sentences, slice(None), self.keys


@cache_class
class BlockAttentionCache(NamedTuple):
    """The cache of block_attention. Its weights and scores are computed on request."""

    q: Array  # (B, H, T, K)
    k: Array  # (B, H, S, K)
    v: Array  # (B, H, S, L)
    y: Array  # (B, H, T, L)
    total: Array  # (B, H, T, 1) the sums of the exponentials, or infinity where all keys are masked
    peaks: tuple[Any, ...]  # the numbers that were subtracted from the scores of each part
    exponentials: tuple[Array, ...] | None  # of each part, (b, H, t, s), or None if they were not stored
    mask: Array | None  # bool, (T, S), or None
    scale: float

    @property
    def weights(self) -> Array:
        """The attention weights, (B, H, T, S)."""
        _, cache = plain.attention(self.q, self.k, self.v, self.mask, scale=self.scale)
        return cache.weights

    @property
    def scores(self) -> Array:
        """The scores before mask and softmax, (B, H, T, S)."""
        return self.q @ self.k.swapaxes(-1, -2) * self.scale


def block_attention(
    q: Array, k: Array, v: Array, mask: Array | None, scale: float, *, store: bool
) -> tuple[Array, BlockAttentionCache]:
    """Compute y = softmax(q kᵀ scale) v.

    Args:
        q: The queries, of shape (B, H, T, K).
        k: The keys, of shape (B, H, S, K).
        v: The values, of shape (B, H, S, L).
        mask: Bool, broadcastable to (B, H, T, S), the same for all sentences and heads; or None.
        scale: The factor of the scores.
        store: Store the exponentials for the backward pass.

    Returns:
        y, of shape (B, H, T, L), and the cache.

    Raises:
        UserError: If the mask has another dtype or shape.
    """
    batch, n_heads, n_queries, _ = q.shape
    check_mask(mask, (batch, n_heads, n_queries, k.shape[2]), "mask")
    if mask is not None:
        mask = np.broadcast_to(mask.reshape(mask.shape[-2:]), (n_queries, k.shape[2]))
    y = like_heads(q, v.shape[-1])  # (B, H, T, L)
    total = np.empty((batch, n_heads, n_queries, 1), q.dtype)
    peaks: list[Any] = []
    exponentials: list[Array] = []
    for part in _parts(q, k, mask):
        scores = (q[part.at_queries] * scale) @ k[part.at_keys].swapaxes(-1, -2)  # (b, H, t, s)
        peak = _peak(scores, part.mask)
        weights = _exponentiate(scores, part.mask, peak)
        sums = row_sums(weights)[..., None]  # (b, H, t, 1)
        sums[sums == 0] = np.inf
        np.matmul(weights, v[part.at_keys], out=y[part.at_queries])
        y[part.at_queries] /= sums
        total[part.at_queries] = sums
        peaks.append(peak)
        if store:
            exponentials.append(weights)
    stored = tuple(exponentials) if store else None
    return y, BlockAttentionCache(q, k, v, y, total, tuple(peaks), stored, mask, scale)


@backward_of(BlockAttentionCache)
def block_attention_backward(dy: Array, cache: BlockAttentionCache) -> tuple[Array, Array, Array]:
    """Return the gradients (dq, dk, dv), with the shapes of q, k and v."""
    q, k, v, scale = cache.q, cache.k, cache.v, cache.scale
    dq, dk, dv = like_heads(q), like_heads(k), like_heads(v)
    for number, part in enumerate(_parts(q, k, cache.mask)):
        if part.is_first and not part.has_all_keys:
            dk[part.sentences] = dv[part.sentences] = 0
        multiply = _write_product if part.is_first and part.has_all_keys else _add_product
        scaled = q[part.at_queries] * scale
        if cache.exponentials is not None:
            weights = cache.exponentials[number]
        else:
            scores = scaled @ k[part.at_keys].swapaxes(-1, -2)
            weights = _exponentiate(scores, part.mask, cache.peaks[number])
        # y = weights v / total, where the weights are the exponentials
        dz = dy[part.at_queries] / cache.total[part.at_queries]  # (b, H, t, L)
        multiply(weights.swapaxes(-1, -2), dz, dv[part.at_keys])
        dscores = dz @ v[part.at_keys].swapaxes(-1, -2)  # (b, H, t, s)
        # as in softmax_backward, with Σ_s dweights_s weights_s = y · dz
        dscores -= np.vecdot(cache.y[part.at_queries], dz)[..., None]
        dscores *= weights
        # scores = scaled kᵀ, scaled = q scale
        np.matmul(dscores, k[part.at_keys], out=dq[part.at_queries])
        multiply(dscores.swapaxes(-1, -2), scaled, dk[part.at_keys])
    dq *= scale
    return dq, dk, dv


def like_heads(x: Array, width: int | None = None) -> Array:
    """Return an empty array (B, H, T, width) for x of shape (B, H, T, K). The default width is K.

    In memory, the heads of a token are adjacent, so that merge_heads does not copy the array.
    """
    batch, n_heads, length, own_width = x.shape
    width = own_width if width is None else width
    return np.empty((batch, length, n_heads, width), x.dtype).swapaxes(1, 2)


def _parts(q: Array, k: Array, mask: Array | None) -> Iterator[QueryBlock]:
    """Yield the parts of the attention, each with about BLOCK scores.

    The last queries come first. With a causal mask, these attend to all keys.
    """
    batch, n_heads, n_queries, _ = q.shape
    n_keys = k.shape[2]
    ranges = []
    for start in reversed(range(0, n_queries, QUERIES)):
        queries = slice(start, min(n_queries, start + QUERIES))
        ranges.append((queries, *_reach(mask, queries, n_keys)))
    for sentences in blocks(batch, n_heads * min(n_queries, QUERIES) * n_keys):
        for number, (queries, keys, allowed) in enumerate(ranges):
            yield QueryBlock(sentences, queries, keys, allowed, number == 0, keys == slice(0, n_keys))


def _reach(mask: Array | None, queries: slice, n_keys: int) -> tuple[slice, Array | None]:
    """Return the range of the keys to which some of the queries may attend, and their part of the mask.

    The mask is None or has the shape (T, S). The part is None if it allows everything.
    """
    if mask is None:
        return slice(0, n_keys), None
    attended = np.flatnonzero(mask[queries].any(0))
    keys = slice(int(attended[0]), int(attended[-1]) + 1) if len(attended) else slice(0, 1)
    part = mask[queries, keys]
    return keys, None if part.all() else part


def _peak(scores: Array, mask: Array | None) -> Any:
    """Return the number to subtract from the scores of each query, (b, H, t, 1), or 0 if all are safe.

    It is 0 for each query whose own scores are safe. Otherwise the last bit of its weights could depend on
    masked tokens or on other queries.
    """
    if scores.max() < SAFE and scores.min() > -SAFE:
        return 0.0
    where = True if mask is None else mask
    peak = scores.max(-1, keepdims=True, initial=-np.inf, where=where)
    lowest = scores.min(-1, keepdims=True, initial=np.inf, where=where)
    is_safe = ((peak < SAFE) & (lowest > -SAFE)) | np.isneginf(peak)
    return np.where(is_safe, 0, peak)


def _exponentiate(scores: Array, mask: Array | None, peak: Any) -> Array:
    """Replace the scores by exp(scores - peak), and by 0 at masked keys. Return the same array."""
    if np.ndim(peak) == 0:
        np.exp(scores, out=scores)
        if mask is not None:
            scores *= mask.astype(scores.dtype)  # the product with a bool mask would convert it for each head
        return scores
    if mask is not None:
        np.copyto(scores, -np.inf, where=~mask)
    scores -= peak
    return np.exp(scores, out=scores)


def _write_product(left: Array, right: Array, out: Array) -> None:
    """Write left @ right to `out`."""
    np.matmul(left, right, out=out)


def _add_product(left: Array, right: Array, out: Array) -> None:
    """Add left @ right to `out`."""
    out += left @ right
