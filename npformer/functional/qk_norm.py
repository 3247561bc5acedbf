"""QK-norm: the RMS norm of queries and keys before their dot products.

Without it, the scores q · k grow with the lengths of the vectors, and training can drive them so far apart
that the softmax gives all weight to one key and passes no gradient on. With it, the lengths are fixed by the
gains. Values are not normalized.

A gain of K numbers serves all heads, and each head is normalized by itself (Qwen3, Gemma 3). A gain of H·K
numbers belongs to the whole projection, before it is split into heads: one mean square for all heads of a
token (OLMo 2).

Source: Henry et al. 2020, "Query-key normalization for Transformers"; Dehghani et al. 2023, section 2.1.
"""

from typing import NamedTuple

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.heads import merge_heads, split_heads
from npformer.functional.rms_norm import RMSNormCache, rms_norm, rms_norm_backward


@cache_class
class QKNormCache(NamedTuple):
    """The cache of qk_norm."""

    norm: RMSNormCache
    n_merged: int | None  # the number H of heads that were normalized together, or None


def qk_norm(x: Array, gain: Array, eps: float = 1e-6) -> tuple[Array, QKNormCache]:
    """Normalize queries or keys.

    Args:
        x: The queries or keys, of shape (B, H, T, K).
        gain: The scale of each number, of shape (K,) for heads by themselves, or (H·K,) for all together.
        eps: A small number that prevents a division by zero.

    Returns:
        y, of shape (B, H, T, K), and the cache.
    """
    n_heads, width = x.shape[1], x.shape[-1]
    if len(gain) == width:
        y, norm_cache = rms_norm(x, gain, eps)
        return y, QKNormCache(norm_cache, None)
    y, norm_cache = rms_norm(merge_heads(x), gain, eps)  # (B, T, H·K)
    return split_heads(y, n_heads), QKNormCache(norm_cache, n_heads)


def qk_norm_backward(dy: Array, cache: QKNormCache) -> tuple[Array, Array]:
    """Return the gradients dx (B, H, T, K) and dgain, of the shape of gain."""
    norm_cache, n_merged = cache
    if n_merged is None:
        return rms_norm_backward(dy, norm_cache)
    # y = split_heads(rms_norm(merge_heads(x))): the backward pass of splitting is merging, and vice versa
    dmerged, dgain = rms_norm_backward(merge_heads(dy), norm_cache)
    return split_heads(dmerged, n_merged), dgain
