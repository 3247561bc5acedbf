"""Splitting the last axis into heads, and merging the heads again.

There are two ways, which lead to the same attention. "The illustrated Transformer" gives the heads an axis of
their own, as npformer does. "Step by step through Attention is All You Need" stacks the heads on the batch
axis. Both only rearrange the entries of an array. So the backward pass of splitting is merging, and the
backward pass of merging is splitting.
"""

from npformer.backend import Array, array_module


def split_heads(x: Array, n_heads: int) -> Array:
    """Split the last axis into heads. The new axis of the heads comes before that of the positions.

    Shapes: x (B, T, H·K) -> (B, H, T, K).
    """
    batch, length, width = x.shape
    return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """Concatenate the heads (Concat in the paper). Shapes: x (B, H, T, K) -> (B, T, H·K)."""
    batch, n_heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, n_heads * width)


def split_heads_on_batch(x: Array, n_heads: int) -> Array:
    """Split the last axis into heads and stack them on the batch axis.

    This is the way of "Step by step through Attention is All You Need". Head 0 of all sentences comes first.
    Shapes: x (B, T, H·K) -> (H·B, T, K).
    """
    xp = array_module(x)
    return xp.concatenate(xp.split(x, n_heads, axis=-1), axis=0)


def merge_heads_on_batch(x: Array, n_heads: int) -> Array:
    """Undo split_heads_on_batch. Shapes: x (H·B, T, K) -> (B, T, H·K)."""
    xp = array_module(x)
    return xp.concatenate(xp.split(x, n_heads, axis=0), axis=-1)
