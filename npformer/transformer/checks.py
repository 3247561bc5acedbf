"""Checks of what a model is given: one sentence that says what is wrong, and where."""

from npformer.backend import array_module
from npformer.errors import UserError


def check_ids(ids, n_words, max_length, name):
    """Refuse ids outside [0, n_words): NumPy would wrap the negative ones, and a GPU all of them.

    Errors: UserError naming the first wrong id and where it stands, or a sentence that is too long.
    """
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise UserError(f"{name} has shape {ids.shape} and dtype {ids.dtype}: give integers (B, T)")
    if ids.shape[1] > max_length:
        raise UserError(
            f"{name} is {ids.shape[1]} tokens long and the model's limit is {max_length}: "
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
