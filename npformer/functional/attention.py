"""Scaled dot-product attention: Vaswani et al. 2017, section 3.2.1.

attention computes the scores q kᵀ / sqrt(K) and everything that follows, so that the formula of the paper and
its gradient can be read here in one piece. Attention with other scores is in npformer.functional.attend.
"""

import math
from typing import Any, NamedTuple

from npformer.backend import Array, Generator
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.linear import sum_to_shape
from npformer.functional.masks import mask_scores
from npformer.functional.softmax import softmax, softmax_backward


@cache_class
class AttentionCache(NamedTuple):
    """The cache of attention. The figures show its weights and scores."""

    q: Array  #: (..., T, K) queries
    k: Array  #: (..., S, K) keys
    v: Array  #: (..., S, L) values
    weights: Array  #: (..., T, S) attention weights: rows sum to 1, or are 0
    dropout_mask: Any  #: (..., T, S) the dropout mask, or None
    mask: Array | None  #: bool, broadcastable to (..., T, S); the figures show it
    scale: float

    @property
    def scores(self) -> Array:
        """The scores (..., T, S) before mask and softmax. They are not stored, but computed on request."""
        return self.q @ self.k.swapaxes(-1, -2) * self.scale


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    scale: float | None = None,
    p: float = 0.0,
    rng: Generator | None = None,
) -> tuple[Array, AttentionCache]:
    """Compute y = softmax(q kᵀ / sqrt(K)) v.

    The output of each query is a weighted mean of the values. The weight of a value is large if the dot
    product of the query and the key is large. The leading axes of q, k and v broadcast.

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., S, K).
        v: The values, of shape (..., S, L).
        mask: Bool, broadcastable to (..., T, S). True means that the query may attend to the key. The output
            of a query that may attend to no key is 0.
        scale: The factor of the scores. The default is 1 / sqrt(K).
        p: The dropout probability of the weights.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of shape (..., T, L), and the cache.

    Raises:
        UserError: If the mask has another dtype or shape, or if there are no keys.

    Source: Vaswani et al. 2017, section 3.2.1.
    """
    check_keys(k)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.swapaxes(-1, -2) * scale  # (..., T, S)
    scores, _ = mask_scores(scores, mask)  # -inf where the query may not attend to the key
    weights, _ = softmax(scores)  # (..., T, S), 0 there
    dropped, dropout_mask = dropout(weights, p, rng)
    y = dropped @ v  # (..., T, L)
    return y, AttentionCache(q, k, v, weights, dropout_mask, mask, scale)


def check_keys(k: Array) -> None:
    """Raise UserError if there are no keys. Shapes: k (..., S, K)."""
    if k.shape[-2] == 0:
        raise UserError(f"k has shape {k.shape}, and attention needs at least one key")


def attention_backward(dy: Array, cache: AttentionCache) -> tuple[Array, Array, Array]:
    """Return the gradients of y = softmax(q kᵀ scale) v: (dq, dk, dv), with the shapes of q, k and v."""
    q, k, v, weights, dropout_mask, _, scale = cache
    dropped = weights if dropout_mask is None else weights * dropout_mask
    # y = dropped @ v
    ddropped = dy @ v.swapaxes(-1, -2)  # (..., T, S)
    dv = dropped.swapaxes(-1, -2) @ dy  # (..., S, L)
    # dropped = weights dropout_mask
    dweights = dropout_backward(ddropped, dropout_mask)
    # weights = softmax(scores); where the mask is False, the weight is 0, and so is this gradient
    dscores = softmax_backward(dweights, weights)  # (..., T, S)
    # scores = q kᵀ scale
    dscores = dscores * scale
    dq = dscores @ k  # (..., T, K)
    dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)
    # an array that was broadcast receives the sum of the gradients of its copies
    return sum_to_shape(dq, q.shape), sum_to_shape(dk, k.shape), sum_to_shape(dv, v.shape)
