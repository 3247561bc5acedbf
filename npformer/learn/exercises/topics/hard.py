"""Chapter 19: hard attention, and gradients through a sample."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics.tools import pairs

SEEN = np.array([[[True] * 5, [True, True, False, True, False]]])  # (1, T, S)


def _rewards(own: Functions, rng: np.random.Generator) -> Any:
    """Compute the gradients for N samples of B sentences, and for one sample each without the sample axis."""
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


HARD = exercises(
    r'''
=== 19 entropy-backward: the gradient of the attention's entropy
import numpy as np


def entropy_backward(dh, cache):
    """Return the gradient of the entropy H = -Σ_s a_s log a_s, where a = softmax(scores) over the last axis.

    dh     the gradient of the entropies, of shape (..., T)
    cache  .weights (..., T, S), the probabilities a, and .h (..., T), the entropies. A masked key has the
           weight 0. There, 0 log 0 counts as 0, and the gradient of the score is 0.
    Returns dscores (..., T, S).
    """
    a, h = cache.weights, cache.h
    # solution
    log_a = np.where(a > 0, np.log(np.where(a > 0, a, 1)), 0)
    return -dh[..., None] * a * (log_a + h[..., None])
--- There are two steps: dH/da_i = -(log a_i + 1), and then the backward pass of the softmax from lesson 5.2.
--- The backward pass of the softmax contains the sum of a_i (log a_i + 1) over the row. This sum is 1 - H.
--- dscores = -dh[..., None] * a * (log a + h[..., None]). Where a is 0, use 0 instead of log a.

=== 19 score-function: the gradients of sampled choices
import numpy as np


def score_function(log_likelihood, baseline=0.0, *, reward_weight=1.0, entropy_weight=0.0):
    """Return the gradients of the loss -mean of [log p(y | s) + entropy_weight · H].

    The mean is over samples and sentences.
    log_likelihood  log p(y | s) of each sentence for each sample s, of shape (N, B); or (B,) if there is one
                    sample for each sentence
    baseline        a number b that is subtracted from log p(y | s), such as its mean
    The reward of a sample is (log p(y | s) - b) · reward_weight.
    Returns (dlog_prob, dentropy). dlog_prob is the gradient of log p(s), of shape (N, B, 1) or (B, 1).
    dentropy is the gradient of the entropy H of each sentence, of shape (B, 1). The last axis has length 1,
    because all T choices of a sentence get the same gradient.
    """
    # solution
    B = log_likelihood.shape[-1]
    reward = (log_likelihood - baseline) * reward_weight
    dlog_prob = -reward / log_likelihood.size
    dentropy = np.full(B, -entropy_weight / B)
    return dlog_prob[..., None], dentropy[..., None]
--- The gradient of the expected value of f is the mean of f times the gradient of log p(s). So the gradient
    of log p(s) is f, divided by the number of terms in the mean.
--- The loss has a minus sign and is a mean. For the reward it is the mean over all samples and sentences.
    For the entropy, which does not depend on the sample, it is the mean over the sentences.
--- dlog_prob = -reward_weight * (log_likelihood - baseline) / log_likelihood.size. dentropy is
    -entropy_weight / B for each of the B sentences. [..., None] adds the last axis.
''',
    {
        "entropy-backward": pairs(F.entropy, ("", (2, 3, 5)), ("a mask", (2, 2, 5), {"mask": SEEN})),
        "score-function": Task(
            F.score_function,
            Values(
                "",
                _rewards,
                numbers=((3, "3 (samples)"), (4, "4 (sentences)"), (12, "12 (samples times sentences)")),
            ),
        ),
    },
)
