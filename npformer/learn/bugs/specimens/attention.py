"""A specimen with a bug: masked attention."""

import math
from typing import Any, NamedTuple

import numpy as np

from npformer.functional import softmax, softmax_backward


class AttentionCache(NamedTuple):
    """The cache of attention."""

    q: Any  # (..., T, K)
    k: Any  # (..., S, K)
    v: Any  # (..., S, L)
    soft: Any  # (..., T, S) the softmax of the scores
    weights: Any  # (..., T, S) attention weights
    mask: Any  # (..., T, S) or None


def attention(q, k, v, mask=None):
    """y = softmax(q kᵀ / sqrt(K)) v, where a query attends only to keys whose mask is True.

    Shapes: q (..., T, K), k (..., S, K), v (..., S, L), mask bool broadcastable to (..., T, S)
    -> y (..., T, L). Returns (y, cache).
    """
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (..., T, S)
    soft, _ = softmax(scores)  # (..., T, S)
    weights = soft if mask is None else np.where(mask, soft, 0)
    return weights @ v, AttentionCache(q, k, v, soft, weights, mask)


def attention_backward(dy, cache):
    """Return (dq, dk, dv)."""
    q, k, v, soft, weights, mask = cache
    # y = weights v
    dweights = dy @ v.swapaxes(-1, -2)  # (..., T, S)
    dv = weights.swapaxes(-1, -2) @ dy  # (..., S, L)
    # a masked weight is 0 whatever its score
    dsoft = dweights if mask is None else np.where(mask, dweights, 0)
    dscores = softmax_backward(dsoft, soft) / math.sqrt(q.shape[-1])  # (..., T, S)
    # scores = q kᵀ / sqrt(K)
    return dscores @ k, dscores.swapaxes(-1, -2) @ q, dv
