"""A specimen with a bug: hard attention, trained with the score function."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import softmax


def compared_with(log_likelihood):
    """Return the baseline of each answer: the usual value of the sentence's draws.

    It changes no gradient on average, and reduces the variance between draws. It is 0 where there is
    nothing to compare with.
    Shapes: log_likelihood (N, B), of N draws -> broadcastable to (N, B).
    """
    return log_likelihood.mean(0)


class HardAttentionCache(NamedTuple):
    """The cache of HardAttention."""

    sample: Any  # (N, B, T, S) bool: True at the value that was read
    weights: Any  # (B, T, S) the probability of each


class HardAttention:
    """z = v_s, with s ~ Multinoulli(softmax(scores)), in several draws.

    The loss is minus the mean, over draws and sentences, of log p(y | s). On average over all that can be
    drawn, dscores is the gradient of the loss's expectation, for any number of draws.
    Shapes: scores (B, T, S), v (B, S, L), sample (N, B, T, S) bool where the choices are given
    -> z (N, B, T, L).
    """

    def __init__(self, draws=2):
        self.draws = draws

    def forward(self, scores, v, *, rng=None, sample=None):
        """Return (z, cache)."""
        weights, _ = softmax(scores)  # (B, T, S)
        if sample is None:
            # each place has a stretch of the line 0 .. 1: a random point falls into one of them
            ends = weights.cumsum(-1)
            point = rng.random((self.draws, *ends.shape[:-1]))[..., None] * ends[..., -1:]
            sample = (ends <= point).sum(-1)[..., None] == np.arange(ends.shape[-1])  # (N, B, T, S)
        return sample @ v, HardAttentionCache(sample, weights)

    def backward(self, dz, log_likelihood, cache):
        """Return (dscores, dv). Shapes: dz (N, B, T, L), log_likelihood (N, B), of whole answers."""
        sample, weights = cache
        # z = sample v, and all draws read the same v
        dv = (sample.swapaxes(-1, -2) @ dz).sum(0)  # (B, S, L)
        # no gradient goes through a draw: what went well becomes likelier
        reward = log_likelihood - compared_with(log_likelihood)  # (N, B)
        dlog_prob = -reward / log_likelihood.size
        # log p(s) = scores_s - log sum exp(scores)
        dscores = (dlog_prob[..., None, None] * (sample - weights)).sum(0)  # (B, T, S)
        return dscores, dv
