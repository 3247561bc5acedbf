"""Embedding. Its gradient is computed from sorted ids, so that each row of the table is written only once."""

import numpy as np

from npformer.backend import Array
from npformer.functional.embedding import EmbeddingCache as PlainEmbeddingCache
from npformer.functional.embedding import embedding as plain_embedding
from npformer.kernels.choice import backward_of
from npformer.kernels.lazy import LazyRows
from npformer.kernels.shared import as_rows


class EmbeddingCache(PlainEmbeddingCache):
    """The cache of this embedding."""

    __slots__ = ()


def embedding(
    ids: Array, table: Array, scale: float = 1.0, zero_id: int | None = None
) -> tuple[Array, EmbeddingCache]:
    """Compute y = scale table[ids] with npformer.functional.embedding, since indexing cannot be made faster.

    Args:
        ids: Integers in [0, V), of shape (...).
        table: The vectors, of shape (V, D).
        scale: The factor of all vectors.
        zero_id: The id whose vector is replaced by 0, or None.

    Returns:
        y, of shape (..., D), and the cache.
    """
    y, cache = plain_embedding(ids, table, scale, zero_id)
    return y, EmbeddingCache(*cache)


@backward_of(EmbeddingCache)
def embedding_backward(dy: Array, cache: EmbeddingCache) -> LazyRows:
    """Return the gradient dtable as LazyRows, one row for each token id that occurs."""
    ids, table, scale, zero_id = cache
    ids, rows = ids.reshape(-1), as_rows(dy)
    order = np.argsort(ids, kind="stable")  # equal ids become neighbours
    if zero_id is not None:
        order = order[ids[order] != zero_id]
    if len(order) == 0:
        return LazyRows(order, rows[:0], len(table))
    tokens = ids[order]
    starts = np.flatnonzero(np.append(True, tokens[1:] != tokens[:-1]))
    sums = np.add.reduceat(rows[order], starts, axis=0)  # one row for each id that occurs
    sums *= scale
    return LazyRows(tokens[starts], sums, len(table))
