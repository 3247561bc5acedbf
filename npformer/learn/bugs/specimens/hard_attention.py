"""A specimen with a bug: hard attention, trained with the score function."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import softmax


def compared_with(log_likelihood):
    """Return the baseline of each answer: the usual value of the sentence's samples.

    It does not change the expected value of the gradient, and it reduces the variance. It is 0 if there is
    no other sample.
    Shapes: log_likelihood (N, B), of N samples -> broadcastable to (N, B).
    """
    return log_likelihood.mean(0)


class HardAttentionCache(NamedTuple):
    """The cache of HardAttention."""

    sample: Any  # (N, B, T, S) bool: True at the value that was read
    weights: Any  # (B, T, S) the probability of each


class HardAttention:
    """z = v_s, with s sampled from softmax(scores), several times.

    The loss is minus the mean of log p(y | s) over samples and sentences. For any number of samples, the
    expected value of dscores is the gradient of the expected loss.
    Shapes: scores (B, T, S), v (B, S, L), sample (N, B, T, S) bool if the choices are given
    -> z (N, B, T, L).
    """

    def __init__(self, draws=2):
        self.draws = draws

    def forward(self, scores, v, *, rng=None, sample=None):
        """Return (z, cache)."""
        weights, _ = softmax(scores)  # (B, T, S)
        if sample is None:
            # a random point in [0, 1) selects value s if it lies between the cumulative sums s - 1 and s
            ends = weights.cumsum(-1)
            point = rng.random((self.draws, *ends.shape[:-1]))[..., None] * ends[..., -1:]
            sample = (ends <= point).sum(-1)[..., None] == np.arange(ends.shape[-1])  # (N, B, T, S)
        return sample @ v, HardAttentionCache(sample, weights)

    def backward(self, dz, log_likelihood, cache):
        """Return (dscores, dv). Shapes: dz (N, B, T, L), log_likelihood (N, B), of whole answers."""
        sample, weights = cache
        # z = sample v, and all samples read the same v
        dv = (sample.swapaxes(-1, -2) @ dz).sum(0)  # (B, S, L)
        # sampling has no derivative: the gradient of log p(s) is the reward
        reward = log_likelihood - compared_with(log_likelihood)  # (N, B)
        dlog_prob = -reward / log_likelihood.size
        # log p(s) = scores_s - log sum exp(scores)
        dscores = (dlog_prob[..., None, None] * (sample - weights)).sum(0)  # (B, T, S)
        return dscores, dv
