"""Scaled dot-product attention, the heart of the Transformer: Vaswani et al. 2017, section 3.2.1."""

import math
from typing import Any, NamedTuple

from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.masking import (
    EXACT,
    MaskingCache,
    mask_queries,
    mask_scores,
    mask_scores_backward,
)
from npformer.functional.softmax import softmax, softmax_backward


class AttentionCache(NamedTuple):
    """What attention_backward needs, and what the figures show."""

    q: Any  # (..., T, K) queries
    k: Any  # (..., S, K) keys
    v: Any  # (..., S, L) values
    weights: Any  # (..., T, S) how much each query looks at each key: rows sum to 1, or are 0
    keep: Any  # (..., T, S) dropout's factors, or None
    masking: MaskingCache
    scale: float

    @property
    def scores(self):
        """The raw scores (..., T, S), before mask and softmax; computed anew, since backward needs none."""
        return self.q @ self.k.swapaxes(-1, -2) * self.scale


def attention(q, k, v, mask=None, *, query_mask=None, masking=EXACT, scale=None, rate=0.0, rng=None):
    """y = softmax(q kᵀ / sqrt(K)) v: each query's mean of the values, weighted by likeness to their keys.

    Shapes: q (..., T, K), k (..., S, K), v (..., S, L), mask bool broadcastable to (..., T, S),
    query_mask bool broadcastable to (..., T, 1) -> y (..., T, L).
    scale replaces 1 / sqrt(K); rate is the dropout on the weights, drawn from rng.
    Errors: UserError for a mask of another dtype or shape.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.swapaxes(-1, -2) * scale  # (..., T, S)
    scores, masked = mask_scores(scores, mask, query_mask, masking)
    weights, _ = softmax(scores)  # (..., T, S)
    weights = mask_queries(weights, query_mask, masking)
    dropped, keep = dropout(weights, rate, rng)
    y = dropped @ v  # (..., T, L)
    return y, AttentionCache(q, k, v, weights, keep, masked, scale)


def attention_backward(dy, cache):
    """Gradients (dq, dk, dv) of y = softmax(q kᵀ scale) v."""
    q, k, v, weights, keep, masked, scale = cache
    dropped = weights if keep is None else weights * keep
    # y = dropped @ v
    ddropped = dy @ v.swapaxes(-1, -2)  # (..., T, S)
    dv = dropped.swapaxes(-1, -2) @ dy  # (..., S, L)
    # dropped = weights keep
    dweights = dropout_backward(ddropped, keep)
    # weights = softmax(scores); a masked query's are 0, which lets nothing through
    dscores = softmax_backward(dweights, weights)  # (..., T, S)
    dscores = mask_scores_backward(dscores, masked)
    # scores = q kᵀ scale
    dscores = dscores * scale
    dq = dscores @ k  # (..., T, K)
    dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)
    return dq, dk, dv
