"""Latent attention: weights of words in two stages, since the word that tells is not the word that is read.

In "save Instagram photos to a Dropbox folder" it is "to" that tells where the source stands, and
"Instagram" that has to be read. So a first softmax says which words are telling, a second one where each
word points, and from both come the weights that the words are read with.
"""

from typing import Any, NamedTuple

from npformer.backend import array_module
from npformer.functional.masking import mask_queries, mask_scores
from npformer.functional.softmax import softmax, softmax_backward
from npformer.settings import require_choice

ORIENTATIONS = ("rows", "columns")
MEASURES = ("sum", "euclidean")


class UnitWeightsCache(NamedTuple):
    """What unit_weights_backward needs."""

    y: Any  # (..., S)
    length: Any  # (..., 1)
    measure: str


def unit_weights(w, measure="sum"):
    """y = w / length, so that the weights of a sentence have the length 1; zeros stay zeros.

    The length is Σ_j w_j where the measure is "sum", sqrt(Σ_j w_j²) where it is "euclidean".
    Shapes: w (..., S), none negative -> y (..., S). Errors: UserError for another measure.
    """
    require_choice("measure", measure, MEASURES)
    xp = array_module(w)
    total = w.sum(-1, keepdims=True) if measure == "sum" else (w * w).sum(-1, keepdims=True)  # (..., 1)
    total = xp.where(total.real == 0, 1, total)  # a sentence without words
    length = total if measure == "sum" else xp.sqrt(total)
    y = w / length
    return y, UnitWeightsCache(y, length, measure)


def unit_weights_backward(dy, cache):
    """Gradient dw of y = w / length."""
    y, length, measure = cache
    # y = w / length, and length grows with w_j by 1 where it is a sum, by w_j / length = y_j else
    slope = 1 if measure == "sum" else y
    return (dy - slope * (dy * y).sum(-1, keepdims=True)) / length


class LatentLookUpCache(NamedTuple):
    """What latent_look_up_backward needs, and what the figures show."""

    v: Any  # (..., S, L) what is read of each word
    latent: Any  # (..., S) how telling each word is: they sum to 1
    active: Any  # (..., S, S) which places each word points at: rows sum to 1, those of padding are 0
    weights: Any  # (..., S) how much each word is read
    orientation: str
    unit: UnitWeightsCache


def latent_look_up(latent_scores, active_scores, v, mask=None, *, orientation="rows", measure="sum"):
    """y = Σ_j w_j v_j, with weights w made in two stages out of scores, wherever they come from.

        l = softmax over the words of latent_scores           the latent weights
        row i of D = softmax over j of active_scores_ij       where in the sentence word i points
        w = D l, or Dᵀ l, divided by its length               the active weights

    orientation "rows" is w = D l, so w_i = Σ_j D_ij l_j: a word is read where it points at telling words.
    "columns" is w = Dᵀ l, so w_j = Σ_i l_i D_ij: a word is read where telling words point at it. The softmax
    is the same in both, along the rows of D. The paper writes the second, as A l with the softmaxes in A's
    columns; the authors' program computes the first.
    Shapes: latent_scores (..., S), active_scores (..., S, S), v (..., S, L), mask bool (..., S), False at
    the padding, whose weight is 0 in l, D and w -> y (..., L).
    Errors: UserError for another orientation or measure, or a mask of another dtype or shape.
    Source: Liu et al. 2016, section 3.
    """
    require_choice("orientation", orientation, ORIENTATIONS)
    keys = None if mask is None else mask[..., None, :]  # (..., 1, S)
    queries = None if mask is None else mask[..., :, None]  # (..., S, 1)
    latent, _ = softmax(mask_scores(latent_scores, mask)[0])  # (..., S)
    active, _ = softmax(mask_scores(active_scores, keys)[0])  # (..., S, S)
    active = mask_queries(active, queries)
    turned = active.swapaxes(-1, -2) if orientation == "columns" else active
    w = (turned @ latent[..., None])[..., 0]  # (..., S)
    weights, unit = unit_weights(w, measure)
    y = (weights[..., None, :] @ v)[..., 0, :]  # (..., L)
    return y, LatentLookUpCache(v, latent, active, weights, orientation, unit)


def latent_look_up_backward(dy, cache):
    """Gradients (dlatent_scores, dactive_scores, dv) of y = Σ_j w_j v_j."""
    v, latent, active, weights, orientation, unit = cache
    # y = Σ_j weights_j v_j
    dweights = (v @ dy[..., None])[..., 0]  # (..., S)
    dv = weights[..., None] * dy[..., None, :]  # (..., S, L)
    # weights = w / length
    dw = unit_weights_backward(dweights, unit)
    if orientation == "rows":
        # w_i = Σ_j active_ij latent_j
        dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]  # (..., S)
        dactive = dw[..., :, None] * latent[..., None, :]  # (..., S, S)
    else:
        # w_j = Σ_i latent_i active_ij
        dlatent = (active @ dw[..., None])[..., 0]  # (..., S)
        dactive = latent[..., :, None] * dw[..., None, :]  # (..., S, S)
    # latent = softmax(latent_scores), active = softmax(active_scores); padding's 0 lets nothing through
    return softmax_backward(dlatent, latent), softmax_backward(dactive, active), dv
