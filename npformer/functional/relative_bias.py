"""The relative bias of T5: a learned number for each head and distance, which is added to the scores.

Each near distance has a number of its own. Far distances are grouped in buckets, each with one number, and
the buckets grow with the distance. So there are few numbers, and a sentence may be longer than all that the
model was trained on.

Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1.
"""

import math
from typing import NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache, embedding, embedding_backward


def relative_buckets(
    n_queries: int,
    n_keys: int,
    like: Array,
    *,
    n_buckets: int = 32,
    max_distance: int = 128,
    both_sides: bool = True,
    start: int = 0,
) -> Array:
    """Return the bucket of the distance from each query t to each key s.

    With both_sides, half of the buckets are for keys after the query, and the other half for all others;
    without, all keys after the query are in bucket 0. In each half, n_exact = half / 2 distances have their
    own bucket, and the others grow by a constant factor up to max_distance:

        bucket = n_exact + (half - n_exact) log(distance / n_exact) / log(max_distance / n_exact)

    Args:
        n_queries: The number of queries T. Their positions are start, start + 1, ...
        n_keys: The number of keys S. Their positions are 0, 1, ...
        like: An array on the device where the result is needed.
        n_buckets: The number of buckets.
        max_distance: From this distance on, all distances share the last bucket.
        both_sides: True for an encoder, False for a decoder, whose queries see no keys after them.
        start: The position of the first query.

    Returns:
        Integers from 0 to n_buckets - 1, of shape (T, S).
    """
    xp = array_module(like)
    distance = xp.arange(start, start + n_queries)[:, None] - xp.arange(n_keys)  # (T, S) t - s
    half = n_buckets // 2 if both_sides else n_buckets
    first = xp.where(distance < 0, half, 0) if both_sides else 0  # the half of the keys after the query
    distance = abs(distance) if both_sides else xp.maximum(distance, 0)
    n_exact = half // 2
    # in float32 and in this order, as in transformers: at a border, another rounding gives another bucket
    share = xp.log(xp.maximum(distance, n_exact).astype(np.float32) / np.float32(n_exact))
    share = share / np.float32(math.log(max_distance / n_exact)) * np.float32(half - n_exact)
    far = xp.minimum(n_exact + share.astype(np.int64), half - 1)
    buckets: Array = first + xp.where(distance < n_exact, distance, far)
    return buckets


@cache_class
class RelativeBiasCache(NamedTuple):
    """The cache of relative_bias."""

    embedding: EmbeddingCache


def relative_bias(table: Array, buckets: Array) -> tuple[Array, RelativeBiasCache]:
    """Return the numbers that are added to the scores of each head, bias_hts = table[bucket_ts, h].

    Args:
        table: The learned numbers, of shape (N, H) for N buckets.
        buckets: The bucket of each query and key, integers of shape (T, S).

    Returns:
        The bias, of shape (H, T, S), and the cache.

    Source: Raffel et al. 2020, section 2.1.
    """
    rows, cache = embedding(buckets, table)  # (T, S, H)
    return rows.transpose(2, 0, 1), RelativeBiasCache(cache)


def relative_bias_backward(dbias: Array, cache: RelativeBiasCache) -> Array:
    """Return dtable, of shape (N, H): a bucket gets the sum over all pairs that share it.

    Shapes: dbias (H, T, S).
    """
    # bias = table[buckets].transpose(2, 0, 1)
    return embedding_backward(dbias.transpose(1, 2, 0), cache.embedding)
