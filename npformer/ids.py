"""Checks of the ids that a model is given: one sentence that says what is wrong, and where."""

import numpy as np

from npformer.backend import array_module, is_array, like
from npformer.errors import UserError


def take_ids(ids, n_words, max_length, name, where, *, start=0):
    """Check ids where they lie, on the host as a rule, then move them to where the array `where` lies.

    Errors: UserError as for as_ids and check_ids.
    """
    ids = as_ids(ids, name)
    check_ids(ids, n_words, max_length, name, start=start)
    return like(ids, where)


def as_ids(ids, name):
    """Lists of ids as an array; arrays of either module as they are.

    Errors: UserError for lists that differ in length.
    """
    if is_array(ids):
        return ids
    try:
        return np.array(ids)
    except ValueError:
        raise UserError(f"{name} holds lists that differ in length: pad them to one length") from None


def check_ids(ids, n_words, max_length, name, *, start=0):
    """Refuse ids outside [0, n_words): NumPy would wrap the negative ones, and a GPU all of them.

    start is the position of the first id in its sentence.
    Errors: UserError naming the first wrong id and where it stands, an empty or too long sentence.
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
    wrong = (ids < 0) | (ids >= n_words)
    if bool(wrong.any()):
        row, column = (int(i[0]) for i in xp.nonzero(wrong))
        raise UserError(
            f"{name}[{row}, {column}] is {int(ids[row, column])}, outside the vocabulary of {n_words} words: "
            f"use ids from 0 to {n_words - 1}"
        )


def check_pairs(source, target_in):
    """Errors: UserError where there is not one source for each target."""
    if len(source) != len(target_in):
        raise UserError(
            f"source holds {len(source)} sentences and target_in {len(target_in)}: give one for each"
        )
