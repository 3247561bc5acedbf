"""Embedding. Its gradient is computed from sorted ids, so that each row of the table is written only once."""

import numpy as np

from npformer import functional as plain
from npformer.backend import Array
from npformer.functional.embedding import EmbeddingCache as PlainEmbeddingCache
from npformer.kernels.choice import backward_of, with_cache
from npformer.kernels.lazy import LazyRows
from npformer.kernels.shared import as_rows


class EmbeddingCache(PlainEmbeddingCache):
    """The cache of this embedding."""

    __slots__ = ()


embedding = with_cache(plain.embedding, EmbeddingCache)


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
