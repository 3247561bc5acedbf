"""Chapter 21: relative positions, and the output of adaptive halting."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import Functions, Gradients, Task, Values, exercises
from npformer.learn.exercises.topics.tools import output

STEPS = np.array([[3, 1, 4, 2], [4, 0, 1, 3]])  # the number of steps of each position, from 0 to 4
TOOK = np.arange(1, 5)[:, None, None] <= STEPS  # (N, B, T)


def _collected(own: Functions, rng: np.random.Generator) -> Any:
    distance = F.clipped_distance(4, 6, 2, rng.random(1))  # (T, S) from 0 to 4
    named = {"(4, 6)": (4, 6), "(2, 3, 4, 6)": (2, 3, 4, 6)}
    return {
        f"x of a y {name}": output(own.collect_by_distance(rng.standard_normal(shape), distance, 5))
        for name, shape in named.items()
    }


def _spread_trial(label: str, max_distance: Any, start: Any) -> Gradients:
    """Return a gradient check of spread_by_distance with the learner's function as its backward pass."""

    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any]:
        n_distances = 2 * max_distance + 1
        x = rng.standard_normal((2, 3, n_distances))
        distance = F.clipped_distance(3, 6, max_distance, x, start)
        return (
            lambda x: (F.spread_by_distance(x, distance), distance),
            lambda dy, distance: own.collect_by_distance(dy, distance, n_distances),
        ), x

    return Gradients(label, make)


def _mix_trial(label: str, took: Any) -> Gradients:
    """Return a gradient check of the mixture."""

    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        states, p = rng.standard_normal((*took.shape, 3)), rng.uniform(0.1, 0.3, took.shape)
        return (lambda s, p: F.mix_states(s, p, took), own.mix_states_backward), states, p

    return Gradients(label, make)


RELATIVE = exercises(
    r'''
=== 21 collect-by-distance: sums over the keys at each distance
import numpy as np


def collect_by_distance(y, distance, n_distances):
    """Return x_tr, which is the sum of y_ts over all keys s with distance[t, s] == r.

    y            (..., T, S)
    distance     integers from 0 to n_distances - 1, of shape (T, S)
    n_distances  the number R of distances
    Returns x (..., T, R) with the dtype of y. An entry is 0 if no key has this distance. This function is
    also the backward pass of y_ts = x_tr with r = distance[t, s].
    """
    # solution
    x = np.zeros((*y.shape[:-1], n_distances), y.dtype)
    for r in range(n_distances):
        x[..., r] = np.where(distance == r, y, 0).sum(-1)
    return x
--- Several keys can have the same distance, and all of them must be added. An assignment x[..., t, r] =
    y[..., t, s] would keep only the last one.
--- Treat one distance r at a time. The condition distance == r selects the entries of y to be summed.
--- For each r, np.where(distance == r, y, 0).sum(-1) has the shape (..., T). Stack the results along a new
    last axis.

=== 21 mix-states-backward: the backward pass of adaptive halting
import numpy as np


def mix_states_backward(dy, cache):
    """Return the gradients of y = Σ_n w_n s_n, the weighted mean of the states of each position.

    A position halts after its last step M. Its weights are w_n = p_n for n < M, and w_M = 1 - Σ_{n<M} p_n.
    dy     the gradient of y, of shape (B, T, D)
    cache  .states (N, B, T, D), the states s; .weights (N, B, T), the weights w, which are 0 after the last
           step; .before (N, B, T), bool, True at the steps before the last step; .last (N, B, T), bool, True
           at the last step
    Returns (dstates, dp), with the shapes of the states and of the weights. The p of the last step is not
    used, so its gradient is 0.
    """
    states, weights, before, last = cache
    # solution
    dstates = weights[..., None] * dy
    dweights = (states * dy).sum(-1)
    dlast = np.where(last, dweights, 0).sum(0)
    dp = np.where(before, dweights - dlast, 0)
    return dstates, dp
--- Begin with y = Σ_n w_n s_n. Compute the gradients of the states and of the weights. The gradient of a
    weight is a sum over D.
--- p_n influences two weights: w_n = p_n, and the last weight, from which p_n is subtracted.
--- dp = np.where(before, dweights - dlast, 0). Here dlast (B, T) is the gradient of the last weight of each
    position, the sum over n of np.where(last, dweights, 0).
''',
    {
        "collect-by-distance": Task(
            F.collect_by_distance,
            Values("", _collected),
            _spread_trial("as a backward pass", 2, 0),
            _spread_trial("as a backward pass, later queries", 1, 3),
        ),
        "mix-states-backward": Task(
            F.mix_states_backward,
            _mix_trial("", TOOK),
            _mix_trial("one sentence, all take two steps", np.ones((2, 1, 3), bool)),
        ),
    },
)
