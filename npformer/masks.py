"""Who may look at whom: bool arrays, True where a query may look at a key.

They broadcast to the scores (B, H, T, S) and combine with &.
"""

from npformer.backend import array_module
from npformer.errors import UserError


def padding_mask(ids, pad_id=0):
    """Keys that are words and not padding. Shapes: ids (B, S) -> (B, 1, 1, S)."""
    return (ids != pad_id)[:, None, None, :]


def query_mask(ids, pad_id=0):
    """Queries that are words and not padding. Shapes: ids (B, T) -> (B, 1, T, 1)."""
    return (ids != pad_id)[:, None, :, None]


def causal_mask(length, like):
    """Position t sees positions 0 .. t, itself included. Shapes: -> (T, T), where the array `like` lies."""
    xp = array_module(like)
    position = xp.arange(length)
    return position[:, None] >= position[None, :]


def local_mask(length, width, like):
    """Position t sees positions t - width .. t + width. Shapes: -> (T, T)."""
    if width < 0:
        raise UserError(f"the width of a local mask is {width}: make it 0 or more")
    xp = array_module(like)
    position = xp.arange(length)
    distance = position[:, None] - position[None, :]
    return (distance <= width) & (distance >= -width)


def mask_from_embeddings(x):
    """The first document's key mask, sum of the embedding != 0, kept to show how it fails.

    Once positions are added, padding no longer sums to 0 and everything passes; and the output of a
    layer norm can sum to exactly 0 and hide a real token. npformer makes its masks from ids.
    Shapes: x (B, S, D) -> (B, 1, 1, S).
    """
    return (x.sum(-1) != 0)[:, None, None, :]
