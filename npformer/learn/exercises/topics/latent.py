"""Lesson 20: the look-up of latent attention, whose weights are made in two stages."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients
from npformer.learn.exercises.topics.tools import pair_trial

PADDED = np.arange(5) < np.array([[4], [5]])  # (2, 5)


def _unit_trial(label: str, measure: Any, shape: Any) -> Gradients:
    """Return a gradient check on weights, which are not negative."""

    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any]:
        return (F.unit_weights, own.unit_weights_backward), 0.2 + rng.random(shape)

    return Gradients(label, make, {"measure": measure})


def _attend_trial(label: str, *batch: Any, mask: Any = None) -> Any:
    """Return a gradient check in the package's orientation, rows."""
    shapes = (*batch, 5), (*batch, 5, 5), (*batch, 5, 3)
    settings = {} if mask is None else {"mask": mask}
    return pair_trial(label, F.latent_attend, "latent_attend_backward", *shapes, **settings)


LATENT = (
    Exercise(
        "unit-weights-backward",
        20,
        "weights divided by their length",
        '''

def unit_weights_backward(dy, cache):
    """The gradient of y = w / length, along the last axis.

    dy     the gradient of y, shape (..., S)
    cache  .y (..., S), .length (..., 1) and .measure: with "sum" the length is the sum of w_j, with
           "euclidean" it is the root of the sum of w_j squared
    Returns dw (..., S). No S × S matrix is needed.
    """
    y, length, measure = cache
''',
        (
            _unit_trial("sum", "sum", (2, 5)),
            _unit_trial("euclidean", "euclidean", (2, 5)),
            _unit_trial("sum, w (6,)", "sum", (6,)),
        ),
        (
            "Raise w_j: y_j grows by 1 / length. But the length grows too, and lowers every y_i.",
            "The length grows with w_j by 1 where it is a sum, and by w_j / length = y_j where it is a root.",
            "dw_j = (dy_j - slope_j · the sum over i of dy_i y_i) / length, with slope 1 or y_j.",
        ),
        {"unit_weights_backward": F.unit_weights_backward},
    ),
    Exercise(
        "latent-attend-backward",
        20,
        "the backward pass of latent attention",
        '''
from npformer.functional import softmax_backward  # softmax_backward(dweights, weights) -> dscores
from npformer.functional import unit_weights_backward  # unit_weights_backward(dweights, unit) -> dw


def latent_attend_backward(dy, cache):
    """The gradients of y = sum over j of weights_j v_j, with weights made in two stages.

    dy     (..., L)
    cache  .v (..., S, L), .latent (..., S), .active (..., S, S), .weights (..., S), .unit (the cache of
           unit_weights), and .orientation, which is "rows" here
    Returns (dlatent_scores, dactive_scores, dv).
    """
    v, latent, active, weights, unit = cache.v, cache.latent, cache.active, cache.weights, cache.unit
    # y = weights @ v
    # weights = unit_weights(w)
    # w_i = sum over j of active_ij latent_j
    # active = softmax(active_scores), latent = softmax(latent_scores)
''',
        (
            _attend_trial("one sentence"),
            _attend_trial("two sentences", 2),
            _attend_trial("padding", 2, mask=PADDED),
        ),
        (
            "Four steps forward, so four steps backward: y, the division, the product, the two softmaxes.",
            "dweights_j = v_j · dy: (v @ dy[..., None])[..., 0]. dv_j = weights_j dy: a product of a column "
            "and a row.",
            "active_ij hears dw_i latent_j; latent_j hears the sum over i of active_ij dw_i, so active is "
            "transposed: active.swapaxes(-1, -2).",
        ),
        {"latent_attend_backward": F.latent_attend_backward},
    ),
)
