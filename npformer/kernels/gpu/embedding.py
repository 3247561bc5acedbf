"""Embedding on a GPU. Its gradient has one row for each position, which is added to the table's gradient."""

from typing import Any

from npformer import functional as plain
from npformer.backend import Array, fused
from npformer.functional.embedding import EmbeddingCache as PlainEmbeddingCache
from npformer.kernels.choice import backward_of, with_cache
from npformer.kernels.lazy import LazyRows
from npformer.kernels.shared import as_rows


class EmbeddingCache(PlainEmbeddingCache):
    """The cache of this embedding."""

    __slots__ = ()


@fused
def read_gradient(xp: Any, dy: Array, ids: Array, scale: float, zero_id: int | None) -> Array:
    """Return for each position the gradient of the table row with the position's token id.

    Args:
        xp: The array module.
        dy: The gradient of the output, of shape (N, D).
        ids: The token ids, of shape (N, 1).
        scale: The factor of all vectors.
        zero_id: The id whose vector is replaced by 0, or None.

    Returns:
        An array of shape (N, D).
    """
    return dy * scale if zero_id is None else xp.where(ids == zero_id, 0, dy * scale)


embedding = with_cache(plain.embedding, EmbeddingCache)


@backward_of(EmbeddingCache)
def embedding_backward(dy: Array, cache: EmbeddingCache) -> LazyRows:
    """Return the gradient dtable as LazyRows, one row for each position."""
    ids, table, scale, zero_id = cache
    ids = ids.reshape(-1)
    return LazyRows(ids, read_gradient(as_rows(dy), ids[:, None], scale, zero_id), len(table))
