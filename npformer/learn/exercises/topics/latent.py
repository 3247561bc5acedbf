"""Chapter 20: latent attention, whose weights are computed in two stages."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import Functions, Gradients, Task, exercises
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


LATENT = exercises(
    r'''
=== 20 unit-weights-backward: the gradient of a normalization of weights

def unit_weights_backward(dy, cache):
    """Return the gradient of y = w / length along the last axis.

    dy     the gradient of y, of shape (..., S)
    cache  .y (..., S), .length (..., 1) and .measure. If the measure is "sum", the length is Σ_j w_j. If the
           measure is "euclidean", the length is sqrt(Σ_j w_j²).
    Returns dw (..., S). You do not need an S × S matrix.
    """
    y, length, measure = cache
    # solution
    slope = 1 if measure == "sum" else y
    return (dy - slope * (dy * y).sum(-1, keepdims=True)) / length
--- w_j influences y in two ways: it is the numerator of y_j, and it is a part of the length, which is the
    denominator of every y_i.
--- The derivative of the length with respect to w_j is 1 for the sum, and w_j / length = y_j for the
    Euclidean length.
--- dw_j = (dy_j - c_j · Σ_i dy_i y_i) / length, where c_j is the derivative from hint 2.

=== 20 latent-attend-backward: the backward pass of latent attention
from npformer import functional as F

# F.softmax_backward(dweights, weights) -> dscores
# F.unit_weights_backward(dweights, unit) -> dw


def latent_attend_backward(dy, cache):
    """Return the gradients of y = Σ_j weights_j v_j, where the weights are computed in two stages.

    dy     the gradient of y, of shape (..., L)
    cache  .v (..., S, L), .latent (..., S), .active (..., S, S), .weights (..., S), .unit (the cache of
           unit_weights), and .orientation, which is "rows" here
    Returns (dlatent_scores, dactive_scores, dv).
    """
    v, latent, active, weights, unit = cache.v, cache.latent, cache.active, cache.weights, cache.unit
    # y = weights @ v
    # weights = unit_weights(w)
    # w_i = Σ_j active_ij latent_j
    # active = softmax(active_scores), latent = softmax(latent_scores)
    # solution
    dweights = (v @ dy[..., None])[..., 0]
    dv = weights[..., None] * dy[..., None, :]
    dw = F.unit_weights_backward(dweights, unit)
    dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]
    dactive = dw[..., :, None] * latent[..., None, :]
    return F.softmax_backward(dlatent, latent), F.softmax_backward(dactive, active), dv
--- The forward pass has four steps, which are listed in the comments of your file from the last to the
    first. Go through them in this order.
--- dweights_j = v_j · dy, which is (v @ dy[..., None])[..., 0]. dv_j = weights_j dy, which is the product of
    a column and a row.
--- The gradient of active_ij is dw_i latent_j. The gradient of latent_j is Σ_i active_ij dw_i, which is
    active.swapaxes(-1, -2) times dw.
''',
    {
        "unit-weights-backward": Task(
            F.unit_weights_backward,
            _unit_trial("sum", "sum", (2, 5)),
            _unit_trial("euclidean", "euclidean", (2, 5)),
            _unit_trial("sum, w (6,)", "sum", (6,)),
        ),
        "latent-attend-backward": Task(
            F.latent_attend_backward,
            _attend_trial("one sentence"),
            _attend_trial("two sentences", 2),
            _attend_trial("padding", 2, mask=PADDED),
        ),
    },
)
