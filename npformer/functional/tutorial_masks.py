"""Attention whose masks act as in three introductions to the Transformer: with large negative numbers.

Only the presets jianshu-demo, datawhale and paperspace use this pair. With their masks, a query that may
attend to no key has weights that are not 0. The formula of the paper is in npformer.functional.attention.
"""

import math
from typing import NamedTuple

from npformer.backend import Array, Generator, array_module
from npformer.functional.attend import AttendCache, attend, attend_backward
from npformer.functional.attention import check_keys
from npformer.functional.caches import cache_class
from npformer.functional.linear import sum_to_shape
from npformer.functional.masks import check_mask


class Masking(NamedTuple):
    """The action of masks on scores and weights.

    Args:
        fill: The number for the scores of masked keys. With -inf their weights are exactly 0.
        how: "replace" replaces the score by the fill. "add" adds the fill to the score.
        query: "after" sets the weights of a masked query to 0 after the softmax. "before" sets its scores to
            0 before the softmax, so that its weights become uniform.
    """

    fill: float = -math.inf
    how: str = "replace"
    query: str = "after"


@cache_class
class FillCache(NamedTuple):
    """The cache of fill_scores."""

    mask: Array | None  # bool, broadcastable to (..., T, S)
    query_mask: Array | None  # bool, broadcastable to (..., T, 1)
    masking: Masking


def fill_scores(
    scores: Array, mask: Array | None, masking: Masking, query_mask: Array | None = None
) -> tuple[Array, FillCache]:
    """Replace the scores by the fill where the mask is False, or add the fill to them there.

    Args:
        scores: The scores, of shape (..., T, S).
        mask: Bool, broadcastable to the scores. True means that the query may attend to the key.
        masking: The action of the masks.
        query_mask: Bool, broadcastable to the scores. False marks queries whose output does not count.

    Returns:
        The masked scores, of shape (..., T, S), and the cache.

    Raises:
        UserError: If a mask is not bool or does not broadcast to the scores.
    """
    xp = array_module(scores)
    check_mask(mask, scores.shape, "mask")
    check_mask(query_mask, scores.shape, "query_mask")
    if mask is not None:
        if masking.how == "replace":
            scores = xp.where(mask, scores, masking.fill)
        else:
            scores = scores + xp.where(mask, 0, masking.fill).astype(scores.dtype)
    if query_mask is not None and masking.query == "before":
        scores = xp.where(query_mask, scores, 0)
    return scores, FillCache(mask, query_mask, masking)


def fill_scores_backward(dscores: Array, cache: FillCache) -> Array:
    """Return the gradient of the scores, of shape (..., T, S).

    It is 0 where a score was replaced. Elsewhere it is the gradient of the masked scores.
    """
    mask, query_mask, masking = cache
    xp = array_module(dscores)
    # scores = where(query_mask, scores, 0)
    if query_mask is not None and masking.query == "before":
        dscores = xp.where(query_mask, dscores, 0)
    # scores = where(mask, scores, fill), or scores + fill
    if mask is not None and masking.how == "replace":
        dscores = xp.where(mask, dscores, 0)
    return dscores


@cache_class
class TutorialAttentionCache(NamedTuple):
    """The cache of tutorial_attention."""

    q: Array  # (..., T, K) queries
    k: Array  # (..., S, K) keys
    fill: FillCache
    attend: AttendCache
    scale: float

    @property
    def v(self) -> Array:
        """The values, (..., S, L)."""
        return self.attend.v

    @property
    def mask(self) -> Array | None:
        """The mask of the keys, broadcastable to (..., T, S), or None."""
        return self.fill.mask

    @property
    def weights(self) -> Array:
        """The attention weights before dropout, (..., T, S)."""
        return self.attend.weights

    @property
    def scores(self) -> Array:
        """The scores (..., T, S) before mask and softmax. They are not stored, but computed on request."""
        return self.q @ self.k.swapaxes(-1, -2) * self.scale


def tutorial_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    masking: Masking,
    *,
    query_mask: Array | None = None,
    scale: float | None = None,
    p: float = 0.0,
    rng: Generator | None = None,
) -> tuple[Array, TutorialAttentionCache]:
    """Compute y = softmax(q kᵀ / sqrt(K)) v, where the masks act on the scores as `masking` says.

    Args:
        q, k, v: The queries (..., T, K), keys (..., S, K) and values (..., S, L).
        mask: Bool, broadcastable to (..., T, S). True means that the query may attend to the key.
        masking: The action of the masks.
        query_mask: Bool, broadcastable to (..., T, 1). False marks queries whose output does not count.
        scale: The factor of the scores. The default is 1 / sqrt(K).
        p: The dropout probability of the weights.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of shape (..., T, L), and the cache.

    Raises:
        UserError: If a mask has another dtype or shape, or if there are no keys.
    """
    check_keys(k)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.swapaxes(-1, -2) * scale  # (..., T, S)
    scores, fill = fill_scores(scores, mask, masking, query_mask)
    # "after" sets the weights of a masked query to 0, as an exact mask of all its keys does
    rows = query_mask if masking.query == "after" else None
    y, attended = attend(scores, v, rows, p=p, rng=rng)  # (..., T, L)
    return y, TutorialAttentionCache(q, k, fill, attended, scale)


def tutorial_attention_backward(dy: Array, cache: TutorialAttentionCache) -> tuple[Array, Array, Array]:
    """Return the gradients (dq, dk, dv), with the shapes of q, k and v."""
    q, k, fill, attended, scale = cache
    # y = softmax(scores) v
    dscores, dv = attend_backward(dy, attended)
    # scores = fill_scores(q kᵀ scale)
    dscores = fill_scores_backward(dscores, fill) * scale  # (..., T, S)
    dq = dscores @ k  # (..., T, K)
    dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)
    # an array that was broadcast receives the sum of the gradients of its copies
    return sum_to_shape(dq, q.shape), sum_to_shape(dk, k.shape), dv
