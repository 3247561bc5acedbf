"""Scaled dot-product attention: matrix products by cuBLAS, and three kernels between them for the softmax.

The speed is limited by the memory of the GPU, and not by arithmetic. The kernels read the scores three times
and write them once, and they apply scale and mask while they read. Separate operations would write a dozen
arrays of this size. CuPy copies batches of matrices whose memory layout cuBLAS does not accept, such as
transposed matrices. So the large arrays (T, S) are never transposed, but the smaller queries, keys and values
are.
"""

import math
from typing import Any

from npformer import functional as plain
from npformer.backend import Array, Generator, fused
from npformer.functional.attention import AttentionCache as PlainAttentionCache
from npformer.functional.masks import check_mask
from npformer.kernels.choice import backward_of
from npformer.kernels.gpu.dropout import drop
from npformer.kernels.shared import draw_dropout_mask


class AttentionCache(PlainAttentionCache):
    """The cache of this attention, whose dropout mask is a DropoutMask."""

    __slots__ = ()


def _masked(xp: Any, scores: Array, mask: Array | None, scale: float) -> Array:
    """Scale the scores inside a kernel, and replace those of masked keys by -inf."""
    return scores * scale if mask is None else xp.where(mask, scores * scale, -math.inf)


@fused
def row_peak(xp: Any, scores: Array, mask: Array | None, scale: float) -> Array:
    """Return the largest score of each row, or 0 if all keys are masked.

    Args:
        xp: The array module.
        scores: The scores before scale and mask, of shape (..., T, S).
        mask: Bool, broadcastable to the scores, or None.
        scale: The factor of the scores.

    Returns:
        An array of shape (..., T).
    """
    peak = xp.max(_masked(xp, scores, mask, scale), axis=-1)
    return xp.where(xp.isfinite(peak), peak, 0)


@fused
def row_share(xp: Any, scores: Array, mask: Array | None, peak: Array, scale: float) -> Array:
    """Return 1 / Σ_s exp(score_s - peak) for each row.

    Args:
        xp: The array module.
        scores: The scores before scale and mask, of shape (..., T, S).
        mask: Bool, broadcastable to the scores, or None.
        peak: The largest score of each row, of shape (..., T, 1).
        scale: The factor of the scores.

    Returns:
        An array of shape (..., T).
    """
    total = xp.sum(xp.exp(_masked(xp, scores, mask, scale) - peak), axis=-1)
    return 1 / xp.where(total == 0, 1, total)


@fused
def attention_weights(
    xp: Any,
    scores: Array,
    mask: Array | None,
    peak: Array,
    share: Array,
    scale: float,
    kept: Array | None,
    factor: float | None,
) -> Array | None:
    """Overwrite the scores with the weights. Return the weights after dropout, or None without dropout.

    Args:
        xp: The array module.
        scores: The scores before scale and mask, of shape (..., T, S).
        mask: Bool, broadcastable to the scores, or None.
        peak, share: The results of row_peak and row_share, of shape (..., T, 1).
        scale: The factor of the scores.
        kept, factor: The dropout mask, of shape (..., T, S), and its factor, or None.
    """
    weights = xp.exp(_masked(xp, scores, mask, scale) - peak) * share
    scores[...] = weights
    return None if kept is None else weights * kept * factor


@fused
def row_common(xp: Any, ddropped: Array, dropped: Array) -> Array:
    """Return Σ_s dropped_s ddropped_s of each row, the sum in the backward pass of the softmax.

    Args:
        xp: The array module.
        ddropped, dropped: The gradient of the weights after dropout, and these weights, of shape (..., T, S).
    """
    return xp.sum(ddropped * dropped, axis=-1)


@fused
def score_gradient(
    xp: Any, ddropped: Array, dropped: Array, weights: Array, common: Array, scale: float
) -> None:
    """Overwrite ddropped with the gradient of q kᵀ.

    Args:
        xp: The array module.
        ddropped, dropped, weights: Arrays of shape (..., T, S).
        common: The result of row_common, of shape (..., T, 1).
        scale: The factor of the scores.
    """
    ddropped[...] = (ddropped * dropped - weights * common) * scale


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    scale: float | None = None,
    p: float = 0.0,
    rng: Generator | None = None,
) -> tuple[Array, PlainAttentionCache]:
    """Compute y = softmax(q kᵀ scale) v, as npformer.functional.attention does.

    The kernel calls the plain pair if the leading axes of q, k and v differ, or if there are no keys.

    Args:
        q, k, v: The queries (B, H, T, K), keys (B, H, S, K) and values (B, H, S, L).
        mask: Bool, broadcastable to (B, H, T, S), or None.
        scale: The factor of the scores. The default is 1 / sqrt(K).
        p: The dropout probability of the weights.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of shape (B, H, T, L), and the cache.

    Raises:
        UserError: If the mask has another dtype or shape.
    """
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or k.shape[-2] == 0:
        return plain.attention(q, k, v, mask, scale=scale, p=p, rng=rng)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    weights = q @ k.swapaxes(-1, -2)  # (..., T, S) the scores, until attention_weights overwrites them
    check_mask(mask, weights.shape, "mask")
    dropout_mask = draw_dropout_mask(weights, p, rng)
    peak = row_peak(weights, mask, scale)[..., None]  # (..., T, 1)
    share = row_share(weights, mask, peak, scale)[..., None]
    dropped = attention_weights(weights, mask, peak, share, scale, *(dropout_mask or (None, None)))
    y = (weights if dropout_mask is None else dropped) @ v  # (..., T, L)
    return y, AttentionCache(q, k, v, weights, dropout_mask, mask, scale)


@backward_of(AttentionCache)
def attention_backward(dy: Array, cache: AttentionCache) -> tuple[Array, Array, Array]:
    """Return the gradients (dq, dk, dv), with the shapes of q, k and v."""
    q, k, v, weights, dropout_mask, _, scale = cache
    dropped = weights if dropout_mask is None else drop(weights, *dropout_mask)
    # y = dropped @ v. Computing dvᵀ = dyᵀ dropped transposes dy and not the larger array dropped
    dv = (dy.swapaxes(-1, -2) @ dropped).swapaxes(-1, -2)  # (..., S, L)
    dscores = dy @ v.swapaxes(-1, -2)  # (..., T, S) the gradient of dropped
    # dropped = weights dropout_mask, weights = softmax(scores): as in softmax_backward,
    # dscores = weights (dweights - Σ_s dweights_s weights_s), where weights dweights = dropped ddropped
    common = row_common(dscores, dropped)[..., None]  # (..., T, 1)
    # scores = q kᵀ scale
    score_gradient(dscores, dropped, weights, common, scale)
    dq = dscores @ k  # (..., T, K)
    dk = (q.swapaxes(-1, -2) @ dscores).swapaxes(-1, -2)  # (..., S, K)
    return dq, dk, dv
