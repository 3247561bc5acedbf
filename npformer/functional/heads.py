"""Splitting the model's width into heads, and joining them again.

Both ways of splitting that the documents show. Each is a mere rearrangement, so the backward pass of
one direction is the other direction.
"""

from npformer.backend import array_module


def split_heads(x, n_heads):
    """Shapes: x (B, T, H·K) -> (B, H, T, K), so that each head holds a matrix of its own."""
    batch, length, width = x.shape
    return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)


def merge_heads(x):
    """Shapes: x (B, H, T, K) -> (B, T, H·K), the heads side by side (the paper's Concat)."""
    batch, n_heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, n_heads * width)


def split_heads_on_batch(x, n_heads):
    """The first document's way: cut the width into H pieces and stack them on the batch axis.

    Shapes: x (B, T, H·K) -> (H·B, T, K), head 0 of every sentence first.
    """
    xp = array_module(x)
    return xp.concatenate(xp.split(x, n_heads, axis=-1), axis=0)


def merge_heads_on_batch(x, n_heads):
    """Shapes: x (H·B, T, K) -> (B, T, H·K)."""
    xp = array_module(x)
    return xp.concatenate(xp.split(x, n_heads, axis=0), axis=-1)
