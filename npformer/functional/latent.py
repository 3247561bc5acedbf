"""Latent attention: attention weights from two softmaxes.

Suppose that a model has to find the source of the photos in "save Instagram photos to a Dropbox folder". The
answer is the token "Instagram", but the token "to" shows where to look for it. A first softmax gives the
importance of each token for this search (the latent weights). A second softmax gives, for each token, the
tokens to which it points. The product of both gives the weights of the tokens that form the output (the
active weights).
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32
from npformer.functional.masks import mask_scores
from npformer.functional.softmax import softmax, softmax_backward
from npformer.validation import require_choice

ORIENTATIONS = ("rows", "columns")
MEASURES = ("sum", "euclidean")


@cache_class
class UnitWeightsCache(NamedTuple):
    """The cache of unit_weights."""

    y: Array  # (..., S)
    length: Array  # (..., 1)
    measure: str


@sums_in_float32
def unit_weights(w: Array, measure: str = "sum") -> tuple[Array, UnitWeightsCache]:
    """Compute y = w / length, which has length 1. If all weights of a row are 0, they stay 0.

    With the measure "sum", the length is Σ_j w_j. With "euclidean", it is sqrt(Σ_j w_j²).

    Shapes: w (..., S), not negative -> y (..., S).

    Raises:
        UserError: If there is no such measure.
    """
    require_choice("measure", measure, MEASURES)
    xp = array_module(w)
    total = w.sum(-1, keepdims=True) if measure == "sum" else (w * w).sum(-1, keepdims=True)  # (..., 1)
    total = xp.where(total.real == 0, 1, total)  # no division by 0 for a sentence without tokens
    length = total if measure == "sum" else xp.sqrt(total)
    y = w / length
    return y, UnitWeightsCache(y, length, measure)


@sums_in_float32
def unit_weights_backward(dy: Array, cache: UnitWeightsCache) -> Array:
    """Return dw, of shape (..., S), the gradient of y = w / length."""
    y, length, measure = cache
    # y = w / length. The derivative of the length with respect to w_j is 1 for "sum", and w_j / length = y_j
    # for "euclidean"
    slope = 1 if measure == "sum" else y
    return (dy - slope * (dy * y).sum(-1, keepdims=True)) / length


@cache_class
class LatentAttendCache(NamedTuple):
    """The cache of latent_attend. The figures show its three kinds of weights."""

    v: Array  # (..., S, L) values
    latent: Array  # (..., S) latent weights: they sum to 1
    active: Array  # (..., S, S) the tokens to which each token points: rows sum to 1, or are 0 at padding
    weights: Array  # (..., S) active weights
    orientation: str
    unit: UnitWeightsCache


def latent_attend(
    latent_scores: Array,
    active_scores: Array,
    v: Array,
    mask: Array | None = None,
    *,
    orientation: str = "rows",
    measure: str = "sum",
) -> tuple[Array, LatentAttendCache]:
    """Compute y = Σ_j w_j v_j, where two softmaxes give the weights w.

        l = softmax over the tokens of latent_scores          the latent weights
        row i of D = softmax over j of active_scores_ij       the tokens to which token i points
        w = D l, or Dᵀ l, divided by its length               the active weights

    The orientation "rows" is w = D l, so w_i = Σ_j D_ij l_j: a token has a large weight if it points to
    tokens with large latent weights. The orientation "columns" is w = Dᵀ l, so w_j = Σ_i l_i D_ij: a token
    has a large weight if tokens with large latent weights point to it. In both, the rows of D sum to 1. The
    paper describes "columns", as A l, where the columns of A sum to 1. The authors' program computes "rows".

    Args:
        latent_scores: The scores of the latent weights, of shape (..., S).
        active_scores: The scores of the pairs, of shape (..., S, S).
        v: The values, of shape (..., S, L).
        mask: Bool, of shape (..., S). False marks padding, whose weight is 0 in l, D and w.
        orientation: "rows" or "columns".
        measure: The length by which w is divided, "sum" or "euclidean" (see unit_weights).

    Returns:
        y, of shape (..., L), and the cache.

    Raises:
        UserError: If there is no such orientation or measure, or if the mask has another dtype or shape.

    Source: Liu et al. 2016, section 3.
    """
    require_choice("orientation", orientation, ORIENTATIONS)
    latent, _ = softmax(mask_scores(latent_scores, mask)[0])  # (..., S)
    pairs = None if mask is None else mask[..., :, None] & mask[..., None, :]  # (..., S, S)
    active, _ = softmax(mask_scores(active_scores, pairs)[0])  # (..., S, S)
    matrix = active.swapaxes(-1, -2) if orientation == "columns" else active  # Dᵀ or D
    w = (matrix @ latent[..., None])[..., 0]  # (..., S)
    weights, unit = unit_weights(w, measure)
    y = (weights[..., None, :] @ v)[..., 0, :]  # (..., L)
    return y, LatentAttendCache(v, latent, active, weights, orientation, unit)


def latent_attend_backward(dy: Array, cache: LatentAttendCache) -> tuple[Array, Array, Array]:
    """Return the gradients dlatent_scores (..., S), dactive_scores (..., S, S) and dv (..., S, L)."""
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
    # latent = softmax(latent_scores), active = softmax(active_scores). Both are 0 at padding, and so are the
    # gradients
    return softmax_backward(dlatent, latent), softmax_backward(dactive, active), dv
