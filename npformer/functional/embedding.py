"""Embedding: a table of vectors, one a word, and its gradient."""

from typing import Any, NamedTuple

from npformer.backend import array_module


class EmbeddingCache(NamedTuple):
    """What embedding_backward needs."""

    ids: Any  # (...) integers
    table: Any  # (V, D)
    scale: float
    zero_id: int | None


def embedding(ids, table, scale=1.0, zero_id=None):
    """y = scale table[ids], and 0 at the positions that hold zero_id (padding).

    Shapes: ids (...) integers in [0, V), table (V, D) -> y (..., D).
    Source: Vaswani et al. 2017, section 3.4 (scale = sqrt(D)).
    """
    xp = array_module(table)
    y = table[ids] * scale  # (..., D)
    if zero_id is not None:
        y = xp.where((ids == zero_id)[..., None], 0, y)
    return y, EmbeddingCache(ids, table, scale, zero_id)


def embedding_backward(dy, cache):
    """Gradient dtable of y = scale table[ids]: each position adds its dy to the row that it read."""
    ids, table, scale, zero_id = cache
    xp = array_module(dy)
    # y = 0 where ids == zero_id
    if zero_id is not None:
        dy = xp.where((ids == zero_id)[..., None], 0, dy)
    # y = scale table[ids]; a plain dtable[ids] += dy would keep only one of several equal ids
    dtable = xp.zeros(table.shape, dy.dtype)  # (V, D)
    xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)
    return dtable
