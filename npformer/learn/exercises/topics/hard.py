"""Lesson 19: hard attention, and gradients through a draw."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import Exercise, Functions, Values
from npformer.learn.exercises.topics.tools import pair_trial

SEEN = np.array([[[True] * 5, [True, True, False, True, False]]])  # (1, T, S)


def _rewards(own: Functions, rng: np.random.Generator) -> Any:
    """Compute the rewards of N draws for B sentences, and of one draw each without the axis of the draws."""
    log_likelihood = -rng.exponential(size=(3, 4))
    found: dict[str, Any] = {}
    for label, reward, settings in (
        ("", log_likelihood, {}),
        (" with a baseline", log_likelihood, {"baseline": -1.5}),
        (
            " with weights",
            log_likelihood,
            {"baseline": -1.5, "reward_weight": 0.7, "entropy_weight": 0.2},
        ),
        (" of one draw", log_likelihood[0], {"baseline": -0.5, "entropy_weight": 0.3}),
    ):
        dlog_prob, dentropy = own.score_function(reward, **settings)
        found |= {f"dlog_prob{label}": dlog_prob, f"dentropy{label}": dentropy}
    return found


HARD = (
    Exercise(
        "entropy-backward",
        19,
        "the gradient of how undecided a query is",
        '''
import numpy as np


def entropy_backward(dh, cache):
    """The gradient of H = -sum over s of a_s log a_s, with a = softmax(scores) over the last axis.

    dh     the gradient of the entropies, shape (..., T)
    cache  .weights (..., T, S), the probabilities a; .h (..., T), the entropies. A masked place has the
           weight 0: there 0 log 0 counts as 0, and its score gets the gradient 0.
    Returns dscores (..., T, S).
    """
    a, h = cache.weights, cache.h
''',
        (
            pair_trial("", F.entropy, "entropy_backward", (2, 3, 5)),
            pair_trial("a mask", F.entropy, "entropy_backward", (2, 2, 5), mask=SEEN),
        ),
        (
            "Two steps: dH/da_i = -(log a_i + 1), and the softmax's own backward pass, lesson 5.",
            "Put together, the sum of a_i (log a_i + 1) over the row is 1 - H.",
            "dscores = -dh[..., None] * a * (log a + h[..., None]); take log 1 where a is 0.",
        ),
        {"entropy_backward": F.entropy_backward},
    ),
    Exercise(
        "score-function",
        19,
        "what rewards tell the choices",
        '''
import numpy as np


def score_function(log_likelihood, baseline=0.0, *, reward_weight=1.0, entropy_weight=0.0):
    """The gradients of the loss -mean over draws and sentences of log p(y | s) + entropy_weight · H.

    log_likelihood  log p(y | s) of each sentence under each draw, shape (N, B), or (B,) for one draw each
    baseline        a number b: what an answer is usually worth
    Returns (dlog_prob, dentropy): the gradient of log p(s), shape (N, B, 1) or (B, 1), which holds the
    reward (log p(y | s) - b) · reward_weight; and that of each sentence's entropy H, shape (B, 1). The last
    axis is for the T choices of the answer, which all get the same.
    """
''',
        (Values("", _rewards, numbers=((3, "3 (the draws)"), (4, "4 (the sentences)"), (12, "12 (both)"))),),
        (
            "The gradient of E[f] is the mean of f · the gradient of log p(s): f stands where a dy would.",
            "The loss has a minus, and is a mean: over all draws and sentences for the reward, over the "
            "sentences alone for the entropy, which no draw changes.",
            "dlog_prob = -reward_weight * (log_likelihood - baseline) / log_likelihood.size, and dentropy is "
            "-entropy_weight / B for each of the B sentences; [..., None] makes the last axis.",
        ),
        {"score_function": F.score_function},
    ),
)
