"""Splitting the last axis into heads, and merging the heads again.

The documents show two ways. Both only rearrange the array. So the backward pass of splitting is merging, and
the backward pass of merging is splitting.
"""

from npformer.backend import Array, array_module


def split_heads(x: Array, n_heads: int) -> Array:
    """Give each head its own matrix. Shapes: x (B, T, H·K) -> (B, H, T, K)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """Put the heads side by side (Concat in the paper). Shapes: x (B, H, T, K) -> (B, T, H·K)."""
    batch, n_heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, n_heads * width)


def split_heads_on_batch(x: Array, n_heads: int) -> Array:
    """Cut the last axis into H pieces and stack them on the batch axis, as the first document does.

    Shapes: x (B, T, H·K) -> (H·B, T, K), head 0 of every sentence first.
    """
    xp = array_module(x)
    return xp.concatenate(xp.split(x, n_heads, axis=-1), axis=0)


def merge_heads_on_batch(x: Array, n_heads: int) -> Array:
    """Undo split_heads_on_batch. Shapes: x (H·B, T, K) -> (B, T, H·K)."""
    xp = array_module(x)
    return xp.concatenate(xp.split(x, n_heads, axis=0), axis=-1)
