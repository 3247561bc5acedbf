"""Scaled dot-product attention for blocks of sentences whose scores fit into a processor cache.

A long causal mask has its own kernel, and so have long sentences.
"""

import math

import numpy as np

from npformer import functional as plain
from npformer.backend import Array, Generator
from npformer.functional.attention import AttentionCache as PlainAttentionCache
from npformer.functional.masks import check_mask
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.block_attention import (
    QUERIES,
    SAFE,
    STORED,
    BlockAttentionCache,
    block_attention,
    like_heads,
)
from npformer.kernels.cpu.blocks import blocks, row_sums
from npformer.kernels.cpu.long_attention import LONG, LongAttentionCache, long_attention
from npformer.kernels.shared import DropoutMask, draw_dropout_mask


class AttentionCache(PlainAttentionCache):
    """The cache of this attention, whose dropout mask is a DropoutMask."""

    __slots__ = ()


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    scale: float | None = None,
    p: float = 0.0,
    rng: Generator | None = None,
) -> tuple[Array, PlainAttentionCache | BlockAttentionCache | LongAttentionCache]:
    """Compute y = softmax(q kᵀ scale) v, as npformer.functional.attention does.

    The kernel calls the plain pair if the leading axes of q, k and v differ.

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
    if not _suits(q, k, v):
        return plain.attention(q, k, v, mask, scale=scale, p=p, rng=rng)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    batch, n_heads, n_queries, _ = q.shape
    is_long = n_queries * k.shape[2] > LONG
    if p == 0 and (n_queries > QUERIES or is_long) and _is_shared(mask):
        return block_attention(q, k, v, mask, scale, store=n_queries * k.shape[2] <= STORED)
    if is_long:
        return long_attention(q, k, v, mask, scale, p, rng)
    weights = np.empty((batch, n_heads, n_queries, k.shape[2]), q.dtype)  # (B, H, T, S)
    check_mask(mask, weights.shape, "mask")
    dropout_mask = draw_dropout_mask(weights, p, rng)
    y = like_heads(q, v.shape[-1])  # (B, H, T, L)
    for block in blocks(batch, weights[0].size):
        scores = np.matmul(q[block], k[block].swapaxes(-1, -2), out=weights[block])
        scores *= scale
        softmax_in_place(scores, part_of(mask, block))
        np.matmul(drop(scores, dropout_mask, block), v[block], out=y[block])
    return y, AttentionCache(q, k, v, weights, dropout_mask, mask, scale)


@backward_of(AttentionCache)
def attention_backward(dy: Array, cache: AttentionCache) -> tuple[Array, Array, Array]:
    """Return the gradients (dq, dk, dv), with the shapes of q, k and v."""
    q, k, v, weights, dropout_mask, _, scale = cache
    dq, dk, dv = like_heads(q), like_heads(k), like_heads(v)
    for block in blocks(len(q), weights[0].size):
        block_weights = weights[block]
        dropped = drop(block_weights, dropout_mask, block)
        # y = dropped @ v
        np.matmul(dropped.swapaxes(-1, -2), dy[block], out=dv[block])
        dscores = dy[block] @ v[block].swapaxes(-1, -2)  # the gradient of dropped
        # dropped = weights dropout_mask, weights = softmax(scores): as in softmax_backward,
        # dscores = weights (dweights - Σ_s dweights_s weights_s), where weights dweights = dropped ddropped
        dscores *= dropped
        dscores -= block_weights * row_sums(dscores)[..., None]
        # scores = q kᵀ scale
        dscores *= scale
        np.matmul(dscores, k[block], out=dq[block])
        np.matmul(dscores.swapaxes(-1, -2), q[block], out=dk[block])
    return dq, dk, dv


def _suits(q: Array, k: Array, v: Array) -> bool:
    """Return True if the kernel accepts these arrays: equal leading axes (B, H), and no empty array."""
    same = q.shape[:-2] == k.shape[:-2] == v.shape[:-2]
    return same and q.ndim == 4 and 0 not in q.shape + k.shape + v.shape


def _is_shared(mask: Array | None) -> bool:
    """Return True if the mask is the same for all sentences and heads: (S,), (T, S) or (1, 1, T, S)."""
    return mask is None or math.prod(np.shape(mask)[:-2]) == 1


def softmax_in_place(scores: Array, mask: Array | None) -> None:
    """Replace the scores by the softmax of each row. The mask is bool and broadcasts to the scores."""
    if scores.max() < SAFE and scores.min() > -SAFE:
        np.exp(scores, out=scores)
        if mask is not None:
            scores *= mask.astype(scores.dtype)  # the product with a bool mask would convert it for each head
    else:
        lowest = scores.min(-1, keepdims=True, initial=np.inf, where=True if mask is None else mask)
        if mask is not None:
            np.copyto(scores, -np.inf, where=~mask)
        peak = scores.max(-1, keepdims=True)
        # The peak is not subtracted in rows whose own scores are small, as in the branch above. Otherwise the
        # last bit of the weights of a query could depend on masked tokens or on other queries.
        is_safe = ((peak < SAFE) & (lowest > -SAFE)) | np.isneginf(peak)
        scores -= np.where(is_safe, 0, peak)
        np.exp(scores, out=scores)
    total = row_sums(scores)
    scores *= (1 / np.where(total == 0, 1, total))[..., None]  # a row with the sum 0 stays 0


def drop(weights: Array, dropout_mask: DropoutMask | None, block: slice) -> Array:
    """Return the weights of a block of sentences after dropout.

    Args:
        weights: The weights of the block, of shape (b, H, T, S).
        dropout_mask: The mask of all sentences, or None.
        block: The indices of the sentences of the block.
    """
    if dropout_mask is None:
        return weights
    dropped = weights * dropout_mask.kept[block]
    dropped *= dropout_mask.factor
    return dropped


def part_of(mask: Array | None, block: slice) -> Array | None:
    """Return the part of a mask that belongs to a block of sentences."""
    if mask is None:
        return None
    mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    return mask if len(mask) == 1 else mask[block]
