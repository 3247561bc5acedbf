"""Attention over long sentences for a few queries at a time, without an array of all weights.

The memory is proportional to the length and not to its square, since the weights are not stored. The backward
pass computes them again for each block, as exp(score - log Σ exp(scores)), with one more matrix product for
the scores. The forward pass stores the logarithm, which is one number for each query.

Source: Rabe and Staats 2021; Dao et al. 2022 (FlashAttention, for GPUs).
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from npformer import functional as plain
from npformer.backend import Array, Generator
from npformer.functional.caches import cache_class
from npformer.functional.dropout import check_dropout
from npformer.functional.masks import check_mask
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.block_attention import like_heads
from npformer.kernels.cpu.blocks import blocks, row_sums
from npformer.kernels.cpu.dropout import draw_factors

# a head with more scores than those of 128 queries and 128 keys is computed by long_attention
LONG = 1 << 14


@cache_class
class LongAttentionCache(NamedTuple):
    """The cache of long_attention. Its weights and scores are computed on request."""

    q: Array  # (B, H, T, K)
    k: Array  # (B, H, S, K)
    v: Array  # (B, H, S, L)
    y: Array  # (B, H, T, L)
    log_total: Array  # (B, H, T) log of the sum of exp(scores); inf where all keys are masked
    mask: Array | None  # bool, broadcastable to (B, H, T, S), or None
    scale: float
    p: float
    seed: int | None  # the dropout mask of each block is drawn from this seed and the indices of the block

    @property
    def weights(self) -> Array:
        """The attention weights before dropout, (B, H, T, S)."""
        _, cache = plain.attention(self.q, self.k, self.v, self.mask, scale=self.scale)
        return cache.weights

    @property
    def dropout_mask(self) -> Array:
        """The factors by which dropout multiplies the weights, (B, H, T, S)."""
        factors = np.ones((*self.log_total.shape, self.k.shape[2]), self.q.dtype)
        for index, _ in _blocks(self):
            factors[index] = _dropped(factors[index], self, index)
        return factors

    @property
    def scores(self) -> Array:
        """The scores before mask and softmax, (B, H, T, S)."""
        return self.q @ self.k.swapaxes(-1, -2) * self.scale


def long_attention(
    q: Array, k: Array, v: Array, mask: Array | None, scale: float, p: float, rng: Generator | None
) -> tuple[Array, LongAttentionCache]:
    """Compute y = softmax(q kᵀ scale) v. The dropout mask differs from that of the plain pair.

    Args:
        q: The queries, of shape (B, H, T, K).
        k: The keys, of shape (B, H, S, K).
        v: The values, of shape (B, H, S, L).
        mask: Bool, broadcastable to (B, H, T, S), or None.
        scale: The factor of the scores.
        p: The dropout probability of the weights.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of shape (B, H, T, L), and the cache.
    """
    batch, n_heads, n_queries, _ = q.shape
    check_mask(mask, (batch, n_heads, n_queries, k.shape[2]), "mask")
    check_dropout(p, rng)
    seed = None if p == 0 or rng is None else int(rng.integers(1 << 62))
    y = like_heads(q, v.shape[-1])  # (B, H, T, L)
    log_total = np.empty((batch, n_heads, n_queries), q.dtype)
    cache = LongAttentionCache(q, k, v, y, log_total, mask, scale, p, seed)
    for index, head in _blocks(cache):
        scores = _scores(cache, index, head)  # (t, S), where t is the number of queries of the block
        peak = scores.max(-1)
        peak = np.where(np.isneginf(peak), 0, peak)
        weights = np.exp(scores - peak[:, None])
        total = row_sums(weights)
        weights *= (1 / np.where(total == 0, 1, total))[:, None]  # a row with the sum 0 stays 0
        with np.errstate(divide="ignore"):
            log_total[index] = np.where(total == 0, np.inf, peak + np.log(total))
        np.matmul(_dropped(weights, cache, index), v[head], out=y[index])
    return y, cache


@backward_of(LongAttentionCache)
def long_attention_backward(dy: Array, cache: LongAttentionCache) -> tuple[Array, Array, Array]:
    """Return the gradients (dq, dk, dv), with the shapes of q, k and v."""
    q, k, v = cache.q, cache.k, cache.v
    dq, dk, dv = np.empty_like(q), np.zeros_like(k), np.zeros_like(v)
    for index, head in _blocks(cache):
        weights = np.exp(_scores(cache, index, head) - cache.log_total[index][:, None])  # (t, S)
        dropped = _dropped(weights, cache, index)
        # y = dropped @ v
        dv[head] += dropped.T @ dy[index]
        dscores = dy[index] @ v[head].T  # the gradient of dropped
        # dropped = weights dropout_mask, weights = softmax(scores): as in softmax_backward,
        # dscores = weights (dweights - Σ_s dweights_s weights_s), where weights dweights = dropped ddropped.
        # Since y = dropped @ v, the sum over s is y · dy
        dscores *= dropped
        dscores -= weights * np.vecdot(cache.y[index], dy[index])[:, None]
        # scores = q kᵀ scale
        dscores *= cache.scale
        np.matmul(dscores, k[head], out=dq[index])
        dk[head] += dscores.T @ q[index]
    return dq, dk, dv


def _blocks(cache: LongAttentionCache) -> Iterator[tuple[tuple[Any, ...], tuple[int, int]]]:
    """Yield the index (sentence, head, slice of queries) of each block, and the index (sentence, head)."""
    batch, n_heads, n_queries, _ = cache.q.shape
    for head in itertools.product(range(batch), range(n_heads)):
        for queries in blocks(n_queries, cache.k.shape[2]):
            yield (*head, queries), head


def _scores(cache: LongAttentionCache, index: tuple[Any, ...], head: tuple[int, int]) -> Array:
    """Return the scores (t, S) of a block of queries, with -inf at masked keys."""
    scores = cache.q[index] @ cache.k[head].T
    scores *= cache.scale
    if cache.mask is not None:
        shape = (*cache.q.shape[:3], cache.k.shape[2])
        np.copyto(scores, -np.inf, where=~np.broadcast_to(cache.mask, shape)[index])
    return scores


def _dropped(weights: Array, cache: LongAttentionCache, index: tuple[Any, ...]) -> Array:
    """Return the weights of a block after dropout. The dropout mask is the same in every call."""
    if not cache.p:
        return weights
    sentence, head, queries = index
    rng = np.random.default_rng([cache.seed, sentence, head, queries.start])
    return weights * draw_factors(weights, cache.p, rng)
