"""Attention with given scores: softmax, dropout, and the weighted sum of the values.

These functions take the scores as an argument. They serve attention with other similarities than the scaled
dot product, with relative positions, biases or soft caps, and with the masks of tutorials. Scaled dot-product
attention, whose scores are q kᵀ / sqrt(K), is in npformer.functional.attention.
"""

from typing import Any, NamedTuple

from npformer.backend import Array, Generator
from npformer.functional.caches import cache_class
from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.linear import sum_to_shape
from npformer.functional.masks import mask_scores
from npformer.functional.softmax import softmax, softmax_backward


@cache_class
class AttentionWeightsCache(NamedTuple):
    """The cache of attention_weights."""

    weights: Array  # (..., T, S) attention weights: rows sum to 1, or are 0
    dropout_mask: Any  # (..., T, S) the dropout mask, or None
    mask: Array | None  # bool, broadcastable to (..., T, S)

    @property
    def dropped(self) -> Array:
        """The attention weights after dropout, (..., T, S). They are computed on request."""
        return self.weights if self.dropout_mask is None else self.weights * self.dropout_mask


def attention_weights(
    scores: Array,
    mask: Array | None = None,
    *,
    p: float = 0.0,
    rng: Generator | None = None,
) -> tuple[Array, AttentionWeightsCache]:
    """Compute the attention weights dropout(softmax(scores)) under a mask.

    Args:
        scores: The scores, of shape (..., T, S).
        mask: Bool, broadcastable to (..., T, S). True means that the query may attend to the key.
        p: The dropout probability of the weights.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        The weights after dropout, of shape (..., T, S), and the cache.

    Raises:
        UserError: If the mask has another dtype or shape.
    """
    scores, _ = mask_scores(scores, mask)  # -inf where the query may not attend to the key
    weights, _ = softmax(scores)  # (..., T, S), 0 there
    dropped, dropout_mask = dropout(weights, p, rng)
    return dropped, AttentionWeightsCache(weights, dropout_mask, mask)


def attention_weights_backward(ddropped: Array, cache: AttentionWeightsCache) -> Array:
    """Return dscores, of shape (..., T, S), the gradient of dropped = dropout(softmax(scores))."""
    weights, dropout_mask, _ = cache
    # dropped = weights dropout_mask
    dweights = dropout_backward(ddropped, dropout_mask)
    # weights = softmax(scores); where the mask is False, the weight is 0, and so is this gradient
    return softmax_backward(dweights, weights)  # (..., T, S)


@cache_class
class AttendCache(NamedTuple):
    """The cache of attend. The figures show its weights."""

    v: Array  # (..., S, L) values
    weights_cache: AttentionWeightsCache

    @property
    def weights(self) -> Array:
        """The attention weights before dropout, (..., T, S)."""
        return self.weights_cache.weights


def attend(scores: Array, v: Array, mask: Array | None = None, **settings: Any) -> tuple[Array, AttendCache]:
    """Compute y = softmax(scores) v: for each query, the weighted mean of the values.

    Args:
        scores: The scores, of shape (..., T, S).
        v: The values, of shape (..., S, L).
        mask: Bool, broadcastable to (..., T, S). True means that the query may attend to the key.
        settings: The other settings of attention_weights.

    Returns:
        y, of shape (..., T, L), and the cache.

    Raises:
        UserError: If the mask has another dtype or shape.

    Source: Bahdanau et al. 2015, section 3.1.
    """
    dropped, weights_cache = attention_weights(scores, mask, **settings)
    return dropped @ v, AttendCache(v, weights_cache)


def attend_backward(dy: Array, cache: AttendCache) -> tuple[Array, Array]:
    """Return the gradients dscores (..., T, S) and dv (..., S, L) of y = softmax(scores) v."""
    v, weights_cache = cache
    dropped = weights_cache.dropped
    # y = dropped @ v
    ddropped = dy @ v.swapaxes(-1, -2)  # (..., T, S)
    dv = dropped.swapaxes(-1, -2) @ dy  # (..., S, L)
    # dropped = attention_weights(scores)
    dscores = attention_weights_backward(ddropped, weights_cache)
    return sum_to_shape(dscores, dropped.shape), sum_to_shape(dv, v.shape)
