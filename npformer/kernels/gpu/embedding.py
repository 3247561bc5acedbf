"""The gradient of an embedding, added straight to the table's, which is as large as the vocabulary."""

from npformer.backend import array_module, fused
from npformer.kernels.shared import as_rows


@fused
def read_gradient(xp, dy, ids, scale, zero_id):
    """What each position adds to the row that it read. Shapes: dy (N, D), ids (N, 1) -> (N, D)."""
    return dy * scale if zero_id is None else xp.where(ids == zero_id, 0, dy * scale)


def embedding_backward(dy, cache, out=None):
    """Gradient dtable. out (V, D): an array to add it to, instead of a new one."""
    ids, table, scale, zero_id = cache
    xp = array_module(dy)
    dtable = xp.zeros(table.shape, dy.dtype) if out is None else out
    ids = ids.reshape(-1)
    xp.add.at(dtable, ids, read_gradient(as_rows(dy), ids[:, None], scale, zero_id))
    return dtable
