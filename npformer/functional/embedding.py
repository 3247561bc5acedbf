"""Embedding: a table with one vector for each token id."""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


@cache_class
class EmbeddingCache(NamedTuple):
    """The cache of embedding."""

    ids: Array  # (...) integers
    table: Array  # (V, D)
    scale: float
    zero_id: int | None


def embedding(
    ids: Array, table: Array, scale: float = 1.0, zero_id: int | None = None
) -> tuple[Array, EmbeddingCache]:
    """Compute y = scale table[ids], and y = 0 at the positions where the id is zero_id.

    Args:
        ids: Integers in [0, V), of shape (...).
        table: The vectors, of shape (V, D).
        scale: The factor of all vectors. The paper uses sqrt(D).
        zero_id: The id whose vector is replaced by 0, usually that of padding.

    Returns:
        y, of shape (..., D), and the cache.

    Source: Vaswani et al. 2017, section 3.4.
    """
    xp = array_module(table)
    y = table[ids] * scale  # (..., D)
    if zero_id is not None:
        y = xp.where((ids == zero_id)[..., None], 0, y)
    return y, EmbeddingCache(ids, table, scale, zero_id)


# the decorator has no effect unless dy is float16
@sums_in_float32
def embedding_backward(dy: Array, cache: EmbeddingCache) -> Array:
    """Return dtable, of shape (V, D): the dy of each position is added to the row of its id."""
    ids, table, scale, zero_id = cache
    xp = array_module(dy)
    # y = 0 where ids == zero_id
    if zero_id is not None:
        dy = xp.where((ids == zero_id)[..., None], 0, dy)
    # y = scale table[ids]. An id can occur several times. dtable[ids] += dy would count only one occurrence
    dtable = xp.zeros(table.shape, dy.dtype)  # (V, D)
    xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)
    return dtable
