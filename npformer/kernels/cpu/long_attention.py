"""Attention over long sentences, some queries at a time: no array of all weights ever exists.

Memory grows with the length, not with its square. The backward pass makes each block's weights anew from
the logarithm of its total, one number a query, and pays for it with one product more.
Source: Rabe and Staats 2021; Dao et al. 2022 (FlashAttention), there for the GPU's fast memory.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from npformer import functional as plain
from npformer.functional.masking import EXACT, MaskingCache, check_mask
from npformer.kernels.cpu.blocks import blocks, row_sums
from npformer.kernels.cpu.dropout import draw_factors

LONG = 1 << 14  # scores of one head, from which on they are not kept: 128 words looking at 128


class LongAttentionCache(NamedTuple):
    """What long_attention_backward needs; weights and scores are computed anew for who asks."""

    q: Any  # (B, H, T, K)
    k: Any  # (B, H, S, K)
    v: Any  # (B, H, S, L)
    y: Any  # (B, H, T, L)
    log_total: Any  # (B, H, T) log of the sum of exp(scores); inf where a query may look at nothing
    mask: Any  # bool, broadcastable to (B, H, T, S), or None
    scale: float
    rate: float
    seed: int | None  # from which every block's dropout follows

    @property
    def weights(self):
        """How much each query looks at each key (B, H, T, S), before dropout."""
        _, cache = plain.attention(self.q, self.k, self.v, self.mask, scale=self.scale)
        return cache.weights

    @property
    def scores(self):
        """The raw scores (B, H, T, S), before mask and softmax."""
        return self.q @ self.k.swapaxes(-1, -2) * self.scale

    @property
    def masking(self):
        """How the mask acted."""
        return MaskingCache(self.mask, None, EXACT)


def long_attention(q, k, v, mask, scale, rate, rng):
    """The plain pair's y = softmax(q kᵀ scale) v. Dropout draws other numbers than the plain pair does."""
    batch, n_heads, n_queries, _ = q.shape
    check_mask(mask, (batch, n_heads, n_queries, k.shape[2]), "mask")
    seed = int(rng.integers(1 << 62)) if rate else None
    y = np.empty((batch, n_queries, n_heads, v.shape[-1]), q.dtype).swapaxes(1, 2)  # (B, H, T, L)
    log_total = np.empty((batch, n_heads, n_queries), q.dtype)
    cache = LongAttentionCache(q, k, v, y, log_total, mask, scale, rate, seed)
    for here, head in _places(cache):
        scores = _scores(cache, here, head)  # (t, S)
        peak = scores.max(-1)
        peak = np.where(np.isneginf(peak), 0, peak)
        weights = np.exp(scores - peak[:, None])
        total = row_sums(weights)
        weights *= np.divide(1, total, out=np.zeros_like(total), where=total != 0)[:, None]
        with np.errstate(divide="ignore"):
            log_total[here] = np.where(total == 0, np.inf, peak + np.log(total))
        np.matmul(_dropped(weights, cache, here), v[head], out=y[here])
    return y, cache


def long_attention_backward(dy, cache):
    """Gradients (dq, dk, dv)."""
    q, k, v = cache.q, cache.k, cache.v
    dq, dk, dv = np.empty_like(q), np.zeros_like(k), np.zeros_like(v)
    for here, head in _places(cache):
        weights = np.exp(_scores(cache, here, head) - cache.log_total[here][:, None])  # (t, S)
        dropped = _dropped(weights, cache, here)
        # y = dropped @ v
        dv[head] += dropped.T @ dy[here]
        dscores = dy[here] @ v[head].T
        # dropped = softmax(scores) keep; what all keys have in common is sum_s dropped_s ddropped_s = y dy
        dscores *= dropped
        dscores -= weights * np.vecdot(cache.y[here], dy[here])[:, None]
        # scores = q kᵀ scale
        dscores *= cache.scale
        np.matmul(dscores, k[head], out=dq[here])
        dk[head] += dscores.T @ q[here]
    return dq, dk, dv


def _places(cache) -> Iterator[tuple[tuple, tuple]]:
    """Pairs (sentence, head, some queries) and (sentence, head), in the order of the array."""
    batch, n_heads, n_queries, _ = cache.q.shape
    for head in itertools.product(range(batch), range(n_heads)):
        for queries in blocks(n_queries, cache.k.shape[2]):
            yield (*head, queries), head


def _scores(cache, here, head):
    """The scores of some queries (t, S), -inf where they may not look."""
    scores = cache.q[here] @ cache.k[head].T
    scores *= cache.scale
    if cache.mask is not None:
        shape = (*cache.q.shape[:3], cache.k.shape[2])
        np.copyto(scores, -np.inf, where=~np.broadcast_to(cache.mask, shape)[here])
    return scores


def _dropped(weights, cache, here):
    """The weights after dropout, the same whenever asked."""
    if not cache.rate:
        return weights
    sentence, head, queries = here
    rng = np.random.default_rng([cache.seed, sentence, head, queries.start])
    return weights * draw_factors(weights, cache.rate, rng)
