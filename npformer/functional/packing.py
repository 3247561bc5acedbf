"""Packing: the words of a batch one after the other, without the padding between its sentences.

All that is done at each position by itself (linear maps, norms, dropout, the logits) need not be done at
padding. Only attention wants to know which words make a sentence: there the rows are spread out again. Each
direction is the other's backward pass.
"""

from typing import Any, NamedTuple

from npformer.backend import array_module


class Packing(NamedTuple):
    """Which places of a batch hold words."""

    places: Any  # (N,) among the B·T places, row by row
    shape: tuple  # (B, T)


def find_words(ids, pad_id):
    """The packing of a batch. Shapes: ids (B, T)."""
    return Packing(array_module(ids).flatnonzero(ids != pad_id), ids.shape)


def pack(x, packing):
    """The rows that are words; all of x, as it is, where packing is None. Shapes: x (B, T, D) -> (N, D)."""
    if packing is None:
        return x
    return array_module(x).take(x.reshape(-1, x.shape[-1]), packing.places, axis=0)


def unpack(x, packing):
    """Every word at its place, and 0 at padding. Shapes: x (N, D) -> (B, T, D)."""
    if packing is None:
        return x
    batch, length = packing.shape
    y = array_module(x).zeros((batch * length, x.shape[-1]), x.dtype)
    y[packing.places] = x
    return y.reshape(batch, length, -1)
