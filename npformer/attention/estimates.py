"""How good an estimate of hard attention's gradient is: its mean and its variance, from all possible draws.

For small cases alone: T queries to S places have S^T draws. So what is estimated by drawing can be checked
against what it should be, and a baseline can be seen to change the variance and not the mean.
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from npformer.functional.hard import (
    hard_look_up,
    hard_look_up_backward,
    score_function,
    straight_through_backward,
)


def every_sample(n_queries, n_places):
    """All that can be drawn: each query may read each place. Shapes: -> (N, 1, T, S) bool, with N = S^T."""
    chosen = np.array(list(product(range(n_places), repeat=n_queries)))  # (N, T)
    return (chosen[:, :, None] == np.arange(n_places))[:, None]


class Draws(NamedTuple):
    """All draws of one sentence."""

    sample: Any  # (N, 1, T, S) bool
    probability: Any  # (N,)
    log_likelihood: Any  # (N,) log p(y | s)
    entropy: Any  # () Σ_t H_t


def every_draw(scores, v, answer, mask=None):
    """All draws with their probabilities, and how good the answer is under each.

    answer is a pair (f, f_backward), f from z (N, 1, T, L) to log p(y | s) (N, 1).
    Shapes: scores (1, T, S), v (1, S, L), mask bool broadcastable to (1, T, S).
    """
    sample = every_sample(*scores.shape[1:])
    if mask is not None:  # no draw goes where nobody may look
        sample = sample[~(sample & ~mask).any((1, 2, 3))]
    z, cache = hard_look_up(scores, v, mask, sample=sample)
    log_likelihood, _ = answer[0](z)
    probability = np.exp(cache.log_prob.sum(-1)[:, 0])
    return Draws(sample, probability, log_likelihood[:, 0], cache.entropy.sum())


def expected_loss(scores, v, answer, mask=None, *, entropy_weight=0.0):
    """-Σ_s p(s) log p(y | s) - λ_e H: what learning makes small, without drawing. Shapes: as every_draw."""
    draws = every_draw(scores, v, answer, mask)
    return -(draws.probability * draws.log_likelihood).sum() - entropy_weight * draws.entropy


class Estimate(NamedTuple):
    """The gradient of one draw, over all draws: its mean, and its variance."""

    dscores: Any  # (1, T, S) mean
    dv: Any  # (1, S, L) mean
    variance: float  # of dscores, summed over its numbers; the mean of N draws has an N-th of it


def estimate(scores, v, answer, mask=None, *, straight_through=False, **settings):
    """Mean and variance of the gradient that one draw gives; settings are those of score_function.

    Shapes: as every_draw.
    """
    draws = every_draw(scores, v, answer, mask)
    grads = [_gradient(scores, v, answer, mask, s, straight_through, settings) for s in draws.sample[:, None]]
    dscores, dv = (np.stack(parts) for parts in zip(*grads, strict=True))  # (N, 1, T, S) and (N, 1, S, L)
    p = draws.probability
    mean = np.tensordot(p, dscores, 1)  # Σ_s p(s) dscores(s)
    variance = float(np.tensordot(p.real, (dscores - mean).real ** 2, 1).sum())
    return Estimate(mean, np.tensordot(p, dv, 1), variance)


def _gradient(scores, v, answer, mask, sample, straight_through, settings):
    """The (dscores, dv) that this one draw gives."""
    f, f_backward = answer
    z, cache = hard_look_up(scores, v, mask, sample=sample)
    log_likelihood, answered = f(z)  # (1, 1)
    dz = f_backward(-np.ones_like(log_likelihood), answered)  # loss = -log p(y | s)
    if straight_through:
        return straight_through_backward(dz, cache)
    dlog_prob, dentropy = score_function(log_likelihood, **settings)
    return hard_look_up_backward(dz, cache, dlog_prob=dlog_prob, dentropy=dentropy)


def with_and_without_baseline(scores, v, answer, mask=None, **settings):
    """Two estimates, of one mean and two variances: with b = E[log p(y | s)], and with b = 0.

    That is the b where a moving baseline comes to rest. Shapes: as every_draw.
    """
    draws = every_draw(scores, v, answer, mask)
    usual = float((draws.probability * draws.log_likelihood).sum())
    with_baseline = estimate(scores, v, answer, mask, baseline=usual, **settings)
    return with_baseline, estimate(scores, v, answer, mask, baseline=0.0, **settings)
