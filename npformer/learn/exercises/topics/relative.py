"""Lesson 21: relative positions by distance, and the mixture of a position that halts."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.exercises.topics.tools import output

STEPS = np.array([[3, 1, 4, 2], [4, 0, 1, 3]])  # how many of four steps each word took; one took none
TOOK = np.arange(1, 5)[:, None, None] <= STEPS  # (N, B, T)


def _collected(own: Functions, rng: np.random.Generator) -> Any:
    distance = F.clipped_distance(4, 6, 2, rng.random(1))  # (T, S) from 0 to 4
    named = {"(4, 6)": (4, 6), "(2, 3, 4, 6)": (2, 3, 4, 6)}
    return {
        f"x of a y {name}": output(own.collect_by_distance(rng.standard_normal(shape), distance, 5))
        for name, shape in named.items()
    }


def _spread_trial(label: str, max_distance: Any, start: Any) -> Gradients:
    """Return a gradient check of spreading, with the learner's collecting as its backward pass."""

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


RELATIVE = (
    Exercise(
        "collect-by-distance",
        21,
        "collect by distance: spreading, transposed",
        '''
import numpy as np


def collect_by_distance(y, distance, n_distances):
    """x_tr = the sum of y_ts over the keys s at distance r from query t.

    y            shape (..., T, S)
    distance     shape (T, S), integers from 0 to n_distances - 1
    n_distances  R
    Returns x (..., T, R), of y's dtype: 0 where no key is at distance r. It is also the backward pass of
    spreading, y_ts = x_tr with r = distance[t, s].
    """
''',
        (
            Values("", _collected),
            _spread_trial("as the backward pass of spreading", 2, 0),
            _spread_trial("one largest distance, later queries", 1, 3),
        ),
        (
            "Several keys may be at the same distance, and all of them count: x[..., t, r] = y[..., t, s] "
            "would keep the last one only.",
            "One distance r at a time: where is distance == r, and what is the sum of y along s there?",
            "For each r: np.where(distance == r, y, 0).sum(-1), which is (..., T); then stack them along a "
            "new last axis.",
        ),
        {"collect_by_distance": F.collect_by_distance},
    ),
    Exercise(
        "mix-states-backward",
        21,
        "the gradient of what a halting word says",
        '''
import numpy as np


def mix_states_backward(dy, cache):
    """The gradients of y = Σ_n w_n s_n: w_n = p_n before a word's last step N, w_N = 1 - the sum of those.

    dy     the gradient of y, shape (B, T, D)
    cache  .states (N, B, T, D); .weights (N, B, T), 0 where no step was taken; .before and .last
           (N, B, T), bool: the steps before a word's last one, and the last one
    Returns (dstates, dp), with the shapes of states and weights. The p of the last step has no say.
    """
    states, weights, before, last = cache
''',
        (
            _mix_trial("", TOOK),
            _mix_trial("one sentence, all take two steps", np.ones((2, 1, 3), bool)),
        ),
        (
            "First y = Σ_n w_n s_n: what does a state hear, and what a weight? A weight needs a sum over D.",
            "p_n is w_n before the last step, but it also takes from the last weight: what any p gains, the "
            "last weight loses.",
            "dp = np.where(before, dweights - dlast, 0), where dlast is the gradient of the last weight of "
            "each word, (B, T): the sum over n of dweights where last.",
        ),
        {"mix_states_backward": F.mix_states_backward},
    ),
)
