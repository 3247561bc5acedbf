"""Packing: all tokens of a batch as the rows of one array, without the padding.

Layers that treat each position separately (linear maps, norms, dropout, the logits) then compute nothing at
padding. Attention needs the tokens of each sentence together, so its input is unpacked first. The backward
pass of unpacking is packing, and the backward pass of packing is unpacking.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module


class Packing(NamedTuple):
    """The positions of the tokens of a batch, without padding."""

    places: Array  # (N,) the indices of the tokens among the B·T positions, row by row
    shape: tuple[int, int]  # (B, T)


def find_tokens(ids: Array, pad_id: int) -> Packing:
    """Return the packing of a batch of token ids (B, T)."""
    return Packing(array_module(ids).flatnonzero(ids != pad_id), ids.shape)


def pack(x: Array, packing: Packing | None) -> Array:
    """Return the vectors of the tokens, or x if packing is None. Shapes: x (B, T, D) -> (N, D)."""
    if packing is None:
        return x
    return array_module(x).take(x.reshape(-1, x.shape[-1]), packing.places, axis=0)


def unpack(x: Array, packing: Packing | None) -> Array:
    """Put each row at the position of its token, and 0 at padding. Return x if packing is None.

    Shapes: x (N, D) -> (B, T, D).
    """
    if packing is None:
        return x
    batch, length = packing.shape
    y = array_module(x).zeros((batch * length, x.shape[-1]), x.dtype)
    y[packing.places] = x
    return y.reshape(batch, length, -1)
