"""Scaled dot-product attention: the products by cuBLAS, and three kernels between them for the softmax.

A GPU waits for its memory, not for arithmetic: scores that are read three times and written once, with mask
and scale at hand, replace a dozen arrays of their size. cuBLAS takes a batch of matrices only as it lies, and
CuPy copies the others first: so the large arrays (T, S) always enter as they are, and what is turned over,
a copy, is the small queries, keys and values.
"""

import math

from npformer import functional as plain
from npformer.backend import fused
from npformer.functional.attention import AttentionCache
from npformer.functional.masking import EXACT, MaskingCache, check_mask
from npformer.kernels.gpu.dropout import drop
from npformer.kernels.shared import KeptCache, draw_kept


def _masked(xp, scores, mask, scale):
    """Inside a kernel: the scores to scale, -inf where a query may not look."""
    return scores * scale if mask is None else xp.where(mask, scores * scale, -math.inf)


@fused
def row_peak(xp, scores, mask, scale):
    """The largest score of each row, 0 if it may look at nothing. Shapes: scores (..., T, S) -> (..., T)."""
    peak = xp.max(_masked(xp, scores, mask, scale), axis=-1)
    return xp.where(xp.isfinite(peak), peak, 0)


@fused
def row_share(xp, scores, mask, peak, scale):
    """1 / sum_s exp(score_s - peak). Shapes: scores (..., T, S), peak (..., T, 1) -> (..., T)."""
    total = xp.sum(xp.exp(_masked(xp, scores, mask, scale) - peak), axis=-1)
    return 1 / xp.where(total == 0, 1, total)


@fused
def weigh(xp, scores, mask, peak, share, scale, kept, factor):
    """Put the weights where the scores were; returns them after dropout, or None where nothing is dropped.

    Shapes: scores and kept (..., T, S), peak and share (..., T, 1) -> (..., T, S).
    """
    weights = xp.exp(_masked(xp, scores, mask, scale) - peak) * share
    scores[...] = weights
    return None if kept is None else weights * kept * factor


@fused
def row_common(xp, ddropped, dropped):
    """sum_s dropped_s ddropped_s of each row: what the softmax takes from all its keys alike."""
    return xp.sum(ddropped * dropped, axis=-1)


@fused
def score_gradient(xp, ddropped, dropped, weights, common, scale):
    """Put the gradient of q kᵀ where that of dropped was. Shapes: (..., T, S), common (..., T, 1)."""
    ddropped[...] = (ddropped * dropped - weights * common) * scale


def attention(q, k, v, mask=None, *, query_mask=None, masking=EXACT, scale=None, rate=0.0, rng=None):
    """The plain pair's y = softmax(q kᵀ scale) v, and its cache; masks of the documents go the plain way.

    The cache's keep is a KeptCache: bools, a byte each where factors take four.
    """
    if query_mask is not None or masking != EXACT:
        return plain.attention(
            q, k, v, mask, query_mask=query_mask, masking=masking, scale=scale, rate=rate, rng=rng
        )
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    weights = q @ k.swapaxes(-1, -2)  # (..., T, S) so far scores
    check_mask(mask, weights.shape, "mask")
    keep = draw_kept(weights, rate, rng)
    peak = row_peak(weights, mask, scale)[..., None]  # (..., T, 1)
    share = row_share(weights, mask, peak, scale)[..., None]
    dropped = weigh(weights, mask, peak, share, scale, *(keep or (None, None)))
    y = (weights if keep is None else dropped) @ v  # (..., T, L)
    return y, AttentionCache(q, k, v, weights, keep, MaskingCache(mask, None, EXACT), scale)


def attention_backward(dy, cache):
    """Gradients (dq, dk, dv)."""
    q, k, v, weights, keep, _, scale = cache
    if not _is_own(cache):
        return plain.attention_backward(dy, cache)
    dropped = weights if keep is None else drop(weights, *keep)
    # y = dropped @ v; dvᵀ = dyᵀ dropped turns over dy, not the larger dropped
    dv = (dy.swapaxes(-1, -2) @ dropped).swapaxes(-1, -2)  # (..., S, L)
    dscores = dy @ v.swapaxes(-1, -2)  # (..., T, S) so far of dropped
    # dropped = softmax(scores) keep: what all keys of a query have in common changes nothing
    common = row_common(dscores, dropped)[..., None]  # (..., T, 1)
    # scores = q kᵀ scale
    score_gradient(dscores, dropped, weights, common, scale)
    dq = dscores @ k  # (..., T, K)
    dk = (q.swapaxes(-1, -2) @ dscores).swapaxes(-1, -2)  # (..., S, K)
    return dq, dk, dv


def _is_own(cache):
    """Whether attention above made the cache, rather than the plain pair."""
    return (
        cache.masking.masking == EXACT
        and cache.masking.query_mask is None
        and (cache.keep is None or isinstance(cache.keep, KeptCache))
    )
