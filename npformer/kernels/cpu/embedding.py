"""The gradient of an embedding: words sorted, so that each row of the table is touched once."""

import numpy as np

from npformer.kernels.shared import as_rows


def embedding_backward(dy, cache, out=None):
    """Gradient dtable. out (V, D): an array to add it to, instead of a new one."""
    ids, table, scale, zero_id = cache
    dtable = np.zeros(table.shape, dy.dtype) if out is None else out
    ids, rows = ids.reshape(-1), as_rows(dy)
    order = np.argsort(ids, kind="stable")  # equal words side by side
    if zero_id is not None:
        order = order[ids[order] != zero_id]
    if len(order) == 0:
        return dtable
    words = ids[order]
    starts = np.flatnonzero(np.append(True, words[1:] != words[:-1]))
    sums = np.add.reduceat(rows[order], starts, axis=0)  # (words that occur, D)
    sums *= scale
    dtable[words[starts]] += sums
    return dtable
