"""Checks of token ids."""

from typing import Any

import numpy as np

from npformer.backend import Array, array_module, is_array, like
from npformer.errors import UserError


def take_ids(ids: Any, vocab_size: int, max_length: int, name: str, where: Array, *, start: int = 0) -> Array:
    """Check token ids and move them to the device of the array `where`.

    They are checked before they are moved: ids from the host are checked there, without waiting for a GPU.

    Args:
        ids: Lists or an array of integers, of shape (B, T).
        vocab_size: The number of tokens V. Ids must be in [0, V).
        max_length: The largest length of a sentence.
        name: The name of the argument, for error messages.
        where: An array on the device where the ids are needed.
        start: The position of the first id in its sentence.

    Returns:
        The ids as an array, of shape (B, T).

    Raises:
        UserError: If as_ids or check_ids raises one.
    """
    ids = as_ids(ids, name)
    check_ids(ids, vocab_size, max_length, name, start=start)
    return like(ids, where)


def as_ids(ids: Any, name: str) -> Array:
    """Turn lists of ids into an array, and return arrays unchanged.

    Raises:
        UserError: If the lists have different lengths.
    """
    if is_array(ids):
        return ids
    try:
        return np.array(ids)
    except ValueError:
        raise UserError(f"{name} holds lists that differ in length: pad them to one length") from None


def check_ids(ids: Array, vocab_size: int, max_length: int, name: str, *, start: int = 0) -> None:
    """Check that all ids are in [0, vocab_size).

    NumPy accepts negative indices, and a GPU accepts any index. Both would silently read a wrong row of the
    table.

    Args:
        ids: Integers, of shape (B, T).
        vocab_size: The number of tokens.
        max_length: The largest length of a sentence.
        name: The name of the argument, for error messages.
        start: The position of the first id in its sentence.

    Raises:
        UserError: If an id is wrong, or if a sentence is empty or too long. The message names the first wrong
            id and its indices.
    """
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise UserError(f"{name} has shape {ids.shape} and dtype {ids.dtype}: give integers (B, T)")
    if 0 in ids.shape:
        raise UserError(f"{name} has shape {ids.shape}: give at least one sentence, of at least one token")
    if start + ids.shape[1] > max_length:
        raise UserError(
            f"{name} is {start + ids.shape[1]} tokens long and the model's limit is {max_length}: "
            "shorten it, or train a model with a larger max_length"
        )
    xp = array_module(ids)
    wrong = (ids < 0) | (ids >= vocab_size)
    if bool(wrong.any()):
        row, column = (int(i[0]) for i in xp.nonzero(wrong))
        raise UserError(
            f"{name}[{row}, {column}] is {int(ids[row, column])}, outside the vocabulary of {vocab_size} "
            f"tokens: use ids from 0 to {vocab_size - 1}"
        )


def check_pairs(source: Array, target_in: Array) -> None:
    """Check that there is one source sentence for each target sentence.

    Raises:
        UserError: If the numbers of sentences differ.
    """
    if len(source) != len(target_in):
        raise UserError(
            f"source holds {len(source)} sentences and target_in {len(target_in)}: give one for each"
        )
