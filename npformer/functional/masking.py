"""How a mask acts on attention scores: the exact way, and the ways of the documents.

A mask is bool and True means "may look". The exact way puts -inf where a query may not look, which
softmax turns into 0, also where a query may look at nothing. The documents use large numbers instead:
they differ where a row is masked throughout (see test_masking.py).
"""

import math
from typing import Any, NamedTuple

from npformer.backend import array_module
from npformer.errors import UserError


class Masking(NamedTuple):
    """What happens to the scores of masked keys, and to the rows of masked queries.

    fill: the number that a masked score gets; -inf is exact.
    how: "replace" puts the fill in place of the score, "add" adds it to the score.
    query: "after" zeroes a masked query's weights after the softmax; "before" zeroes its scores
        before, so that its weights become uniform.
    """

    fill: float = -math.inf
    how: str = "replace"
    query: str = "after"


EXACT = Masking()


class MaskingCache(NamedTuple):
    """What mask_scores_backward needs."""

    mask: Any  # (..., T, S) or None
    query_mask: Any  # (..., T, 1) or None
    masking: Masking


def mask_scores(scores, mask=None, query_mask=None, masking=EXACT):
    """Put the fill where the mask is False.

    Shapes: scores (..., T, S); mask, query_mask bool, broadcastable to it -> the same as scores.
    Errors: UserError where a mask is not bool or does not fit the scores.
    """
    xp = array_module(scores)
    check_mask(mask, scores.shape, "mask")
    check_mask(query_mask, scores.shape, "query_mask")
    if mask is not None:
        if masking.how == "replace":
            scores = xp.where(mask, scores, masking.fill)
        else:
            scores = scores + xp.where(mask, 0, masking.fill).astype(scores.dtype)
    if query_mask is not None and masking.query == "before":
        scores = xp.where(query_mask, scores, 0)
    return scores, MaskingCache(mask, query_mask, masking)


def mask_scores_backward(dscores, cache):
    """A score that was replaced has no gradient; one that was added to keeps it."""
    mask, query_mask, masking = cache
    xp = array_module(dscores)
    # scores = where(query_mask, scores, 0)
    if query_mask is not None and masking.query == "before":
        dscores = xp.where(query_mask, dscores, 0)
    # scores = where(mask, scores, fill), or scores + fill
    if mask is not None and masking.how == "replace":
        dscores = xp.where(mask, dscores, 0)
    return dscores


def mask_queries(weights, query_mask, masking=EXACT):
    """Zero the weights of masked queries, where the masking says "after"."""
    if query_mask is None or masking.query == "before":
        return weights
    return array_module(weights).where(query_mask, weights, 0)


def check_mask(mask, shape, name):
    """Refuse a mask that is not bool, or that does not broadcast to the scores' shape."""
    if mask is None:
        return
    kind = getattr(mask, "dtype", type(mask).__name__)
    if str(kind) != "bool":
        raise UserError(f"{name} has dtype {kind}: make it bool, where True means may look")
    padded = (1,) * (len(shape) - mask.ndim) + tuple(mask.shape)
    if len(padded) != len(shape) or any(m not in (1, n) for m, n in zip(padded, shape, strict=True)):
        raise UserError(f"{name} has shape {mask.shape} and must broadcast to the scores' shape {shape}")


def check_words(mask, x):
    """Refuse a mask of words that is not bool, one for each row of x. Shapes: x (..., D), mask (...)."""
    if mask is None:
        return
    kind = getattr(mask, "dtype", type(mask).__name__)
    if str(kind) != "bool":
        raise UserError(f"mask has dtype {kind}: make it bool, where True means a word")
    if tuple(mask.shape) != tuple(x.shape[:-1]):
        raise UserError(f"mask has shape {mask.shape} and the words {x.shape[:-1]}: they must agree")
