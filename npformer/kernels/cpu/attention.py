"""Scaled dot-product attention, some sentences at a time: their scores stay in the cache between passes."""

import math

import numpy as np

from npformer import functional as plain
from npformer.functional.attention import AttentionCache
from npformer.functional.masking import EXACT, MaskingCache, check_mask
from npformer.kernels.cpu.blocks import blocks, row_sums
from npformer.kernels.cpu.long_attention import (
    LONG,
    LongAttentionCache,
    long_attention,
    long_attention_backward,
)
from npformer.kernels.shared import draw_kept

# exp of numbers within ±60 neither overflows nor vanishes in float32, also summed over a thousand: a row of
# such scores needs no maximum subtracted
SAFE = 60.0


def attention(q, k, v, mask=None, *, query_mask=None, masking=EXACT, scale=None, rate=0.0, rng=None):
    """The plain pair's y = softmax(q kᵀ scale) v, and its cache, whose keep is a KeptCache.

    Masks of the documents go the plain way.
    """
    if query_mask is not None or masking != EXACT or q.ndim != 4 or 0 in (*q.shape, k.shape[2]):
        return plain.attention(
            q, k, v, mask, query_mask=query_mask, masking=masking, scale=scale, rate=rate, rng=rng
        )
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    batch, n_heads, n_queries, _ = q.shape
    if n_queries * k.shape[2] > LONG:
        return long_attention(q, k, v, mask, scale, rate, rng)
    weights = np.empty((batch, n_heads, n_queries, k.shape[2]), q.dtype)  # (B, H, T, S)
    check_mask(mask, weights.shape, "mask")
    keep = draw_kept(weights, rate, rng)
    # the heads of a word side by side, so that merging them is a mere view
    y = np.empty((batch, n_queries, n_heads, v.shape[-1]), q.dtype).swapaxes(1, 2)  # (B, H, T, L)
    for block in blocks(batch, weights[0].size):
        scores = np.matmul(q[block], k[block].swapaxes(-1, -2), out=weights[block])
        scores *= scale
        softmax_in_place(scores, part_of(mask, block))
        np.matmul(drop(scores, keep, block), v[block], out=y[block])
    masked = MaskingCache(mask, None, EXACT)
    return y, AttentionCache(q, k, v, weights, keep, masked, scale)


def attention_backward(dy, cache):
    """Gradients (dq, dk, dv)."""
    if isinstance(cache, LongAttentionCache):
        return long_attention_backward(dy, cache)
    q, k, v, weights, keep, masked, scale = cache
    if masked.masking != EXACT or q.ndim != 4 or 0 in weights.shape or isinstance(keep, np.ndarray):
        return plain.attention_backward(dy, cache)
    dq, dk, dv = (_like_heads(x) for x in (q, k, v))
    for block in blocks(len(q), weights[0].size):
        seen = weights[block]
        dropped = drop(seen, keep, block)
        # y = dropped @ v
        np.matmul(dropped.swapaxes(-1, -2), dy[block], out=dv[block])
        dscores = dy[block] @ v[block].swapaxes(-1, -2)  # so far of dropped
        # dropped = softmax(scores) keep: what all keys of a query have in common changes nothing
        dscores *= dropped
        dscores -= seen * row_sums(dscores)[..., None]
        # scores = q kᵀ scale
        dscores *= scale
        np.matmul(dscores, k[block], out=dq[block])
        np.matmul(dscores.swapaxes(-1, -2), q[block], out=dk[block])
    return dq, dk, dv


def softmax_in_place(scores, mask):
    """The softmax of each row, over the scores themselves. mask, bool, broadcasts to them; or None."""
    if scores.max() < SAFE and scores.min() > -SAFE:
        np.exp(scores, out=scores)
        if mask is not None:
            scores *= mask
    else:
        lowest = scores.min(-1, keepdims=True, initial=np.inf, where=True if mask is None else mask)
        if mask is not None:
            np.copyto(scores, -np.inf, where=~mask)
        peak = scores.max(-1, keepdims=True)
        # a row must be treated as above where it is such a row itself: its weights may not depend, not even
        # in their last bit, on words that it may not see
        as_above = ((peak < SAFE) & (lowest > -SAFE)) | np.isneginf(peak)
        scores -= np.where(as_above, 0, peak)
        np.exp(scores, out=scores)
    total = row_sums(scores)
    scores *= np.divide(1, total, out=np.zeros_like(total), where=total != 0)[..., None]


def drop(weights, keep, block):
    """The weights of a block of sentences after dropout."""
    if keep is None:
        return weights
    dropped = weights * keep.kept[block]
    dropped *= keep.factor
    return dropped


def part_of(mask, block):
    """The mask of a block of sentences."""
    if mask is None:
        return None
    mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    return mask if len(mask) == 1 else mask[block]


def _like_heads(x):
    """Room for a gradient of x, laid out so that merging the heads is a mere view. Shapes: (B, H, T, K)."""
    batch, n_heads, length, width = x.shape
    return np.empty((batch, length, n_heads, width), x.dtype).swapaxes(1, 2)
