"""Hard attention: each query reads one position of the memory, drawn with the attention weights.

The functions at the end enumerate all draws of a small example. They show that the estimated gradient is
unbiased, and its variance.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.hard import (
    HardAttendCache,
    hard_attend,
    hard_attend_backward,
    score_function,
    straight_through_backward,
)
from npformer.functional.masks import check_token_mask
from npformer.nn.attention.similarity import check_queries
from npformer.nn.module import Module


@cache_class
class HardAttentionCache(NamedTuple):
    """The cache of HardAttention."""

    similarity: Any  # the cache of the similarity
    attend: HardAttendCache

    @property
    def weights(self) -> Array:
        """The probability with which each query reads each position, (B, T, S)."""
        return self.attend.weights

    @property
    def sample(self) -> Array:
        """The drawn position of each query, one-hot, ([N,] B, T, S) bool."""
        return self.attend.sample

    @property
    def log_prob(self) -> Array:
        """The log-probability of the drawn position, ([N,] B, T)."""
        return self.attend.log_prob

    @property
    def entropy(self) -> Array:
        """The entropy of the weights of each query, (B, T)."""
        return self.attend.entropy


class HardAttention(Module):
    """Hard attention: each query reads one position of the memory, drawn with the attention weights.

        z_t = m_s,  s ~ Multinoulli(a_t),  a_t = softmax over s of similarity(h_t, m_s)

    The mean over all draws is soft attention, E[z_t] = Σ_s a_ts m_s, as in GlobalAttention.
    With train=True the positions are drawn: once, or N times with draws=N. Otherwise each query reads its
    most probable position. Shapes: queries (B, T, K), memory (B, S, M), mask bool (B, S), True at the
    positions that may be read -> context (B, T, M), or (N, B, T, M) for N draws. The context is 0 if the
    whole memory of a sentence is masked.

    Args:
        similarity: The layer that compares queries and memory, such as Similarity.
        straight_through: In the backward pass, treat the drawn value as the weighted mean of soft attention.
            This gradient is biased, but it needs no rewards.

    Raises:
        UserError: If the mask has another shape or dtype, or if train is True and rng is None.

    Source: Xu et al. 2015, section 4.1.
    """

    def __init__(self, similarity: Any, *, straight_through: bool = False) -> None:
        self.similarity, self.straight_through = similarity, straight_through

    def forward(
        self,
        queries: Array,
        memory: Array,
        mask: Array | None = None,
        *,
        train: bool = False,
        rng: np.random.Generator | None = None,
        draws: int | None = None,
    ) -> tuple[Array, Any]:
        """Return (context, cache)."""
        if train and rng is None:
            raise UserError(
                "hard attention with train=True needs a generator: give rng=np.random.default_rng(seed)"
            )
        check_queries(queries, memory, self.similarity, "HardAttention")
        check_token_mask(mask, memory)
        allowed = None if mask is None else mask[:, None]  # (B, 1, S)
        scores, compared = self.similarity.forward(queries, memory)  # (B, T, S)
        drawing: dict[str, Any] = {"rng": rng, "draws": draws} if train else {}
        context, attended = hard_attend(scores, memory, allowed, **drawing)  # ([N,] B, T, M)
        return context, HardAttentionCache(compared, attended)

    def backward(
        self, dcontext: Array, cache: Any, *, dlog_prob: Array | None = None, dentropy: Array | None = None
    ) -> tuple[Array, Array]:
        """Return (dqueries, dmemory).

        Args:
            dcontext: The gradient of the context, of shape ([N,] B, T, M).
            cache: The cache of forward.
            dlog_prob: The gradient of the log-probability of the draws, broadcastable to ([N,] B, T).
                functional.score_function computes it from the rewards.
            dentropy: The gradient of the entropy, broadcastable to (B, T).

        Raises:
            UserError: If straight_through is True and dlog_prob or dentropy is given.
        """
        if self.straight_through:
            if dlog_prob is not None or dentropy is not None:
                raise UserError("with straight_through there is no dlog_prob and no dentropy: leave them out")
            dscores, dvalues = straight_through_backward(dcontext, cache.attend)
        else:
            dscores, dvalues = hard_attend_backward(
                dcontext, cache.attend, dlog_prob=dlog_prob, dentropy=dentropy
            )
        # scores = similarity(queries, memory): the memory gives both the keys and the values
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        return dqueries, dvalues + dkeys


class MovingBaseline:
    """A moving average of the log-likelihoods: b_k = .9 b_{k-1} + .1 log p(y | s_k), with b_0 = 0.

    First use its value in score_function, then update it: the gradient of draw k needs b_{k-1}. The value b_k
    contains draw k, so log p - b_k = .9 (log p - b_{k-1}), and the gradient of the scores would be too small
    by the factor .9 (for N draws by the factor 1 - .1 / N).

    Args:
        decay: The weight of the old value, .9 in the formula above.

    Raises:
        UserError: If the decay is outside [0, 1].

    Source: Xu et al. 2015, section 4.1.
    """

    def __init__(self, decay: float = 0.9) -> None:
        if not 0 <= decay <= 1:
            raise UserError(f"decay is {decay}: it is a share, from 0 to 1")
        self.decay, self.value = decay, 0.0

    def update(self, log_likelihood: Array) -> None:
        """Move the value towards the mean of the last draws. Shapes: log_likelihood (...)."""
        self.value = self.decay * self.value + (1 - self.decay) * float(log_likelihood.mean())


def every_sample(n_queries: int, n_places: int) -> Array:
    """Return all possible draws of T queries from S positions. Shapes: -> (N, 1, T, S) bool, N = S^T."""
    chosen = np.array(list(product(range(n_places), repeat=n_queries)))  # (N, T)
    return (chosen[:, :, None] == np.arange(n_places))[:, None]


class Draws(NamedTuple):
    """All draws of one sentence."""

    sample: Any  # (N, 1, T, S) bool
    probability: Any  # (N,)
    log_likelihood: Any  # (N,) log p(y | s)
    entropy: Any  # () Σ_t H_t


def every_draw(scores: Array, v: Array, answer: Any, mask: Array | None = None) -> Draws:
    """Return all draws with their probabilities, and the log-likelihood of the answer for each draw.

    Args:
        scores: The scores of one sentence, of shape (1, T, S).
        v: The values, of shape (1, S, L).
        answer: A pair (f, f_backward), where f maps z (N, 1, T, L) to log p(y | s) (N, 1).
        mask: Bool, broadcastable to (1, T, S). True means that the query may read the position.
    """
    sample = every_sample(*scores.shape[1:])
    if mask is not None:  # remove the draws that read a masked position
        sample = sample[~(sample & ~mask).any((1, 2, 3))]
    z, cache = hard_attend(scores, v, mask, sample=sample)
    log_likelihood, _ = answer[0](z)
    probability = np.exp(cache.log_prob.sum(-1)[:, 0])
    return Draws(sample, probability, log_likelihood[:, 0], cache.entropy.sum())


def expected_loss(
    scores: Array, v: Array, answer: Any, mask: Array | None = None, *, entropy_weight: float = 0.0
) -> Any:
    """Compute the expected loss -Σ_s p(s) log p(y | s) - λ_e H over all draws.

    Args:
        scores, v, answer, mask: As in every_draw.
        entropy_weight: λ_e.

    Returns:
        The loss, of shape ().
    """
    draws = every_draw(scores, v, answer, mask)
    return -(draws.probability * draws.log_likelihood).sum() - entropy_weight * draws.entropy


class Estimate(NamedTuple):
    """The mean and the variance, over all draws, of the gradient that one draw gives."""

    dscores: Any  # (1, T, S) mean
    dv: Any  # (1, S, L) mean
    # of dscores, summed over its entries; the variance of the mean of N draws is 1/N of it
    variance: float


def estimate(
    scores: Array,
    v: Array,
    answer: Any,
    mask: Array | None = None,
    *,
    straight_through: bool = False,
    **settings: Any,
) -> Estimate:
    """Return the mean and the variance of the gradient that one draw gives.

    Args:
        scores, v, answer, mask: As in every_draw.
        straight_through: Use the straight-through gradient instead of the score function.
        settings: The settings of score_function.
    """
    draws = every_draw(scores, v, answer, mask)
    grads = [_gradient(scores, v, answer, mask, s, straight_through, settings) for s in draws.sample[:, None]]
    dscores, dv = (np.stack(parts) for parts in zip(*grads, strict=True))  # (N, 1, T, S) and (N, 1, S, L)
    p = draws.probability
    mean = np.tensordot(p, dscores, 1)  # Σ_s p(s) dscores(s)
    variance = float(np.tensordot(p.real, (dscores - mean).real ** 2, 1).sum())
    return Estimate(mean, np.tensordot(p, dv, 1), variance)


def _gradient(
    scores: Array,
    v: Array,
    answer: Any,
    mask: Array | None,
    sample: Array,
    straight_through: bool,
    settings: dict[str, Any],
) -> Any:
    """Return the gradients (dscores, dv) of one draw."""
    f, f_backward = answer
    z, cache = hard_attend(scores, v, mask, sample=sample)
    log_likelihood, answered = f(z)  # (1, 1)
    dz = f_backward(-np.ones_like(log_likelihood), answered)  # loss = -log p(y | s)
    if straight_through:
        return straight_through_backward(dz, cache)
    dlog_prob, dentropy = score_function(log_likelihood, **settings)
    return hard_attend_backward(dz, cache, dlog_prob=dlog_prob, dentropy=dentropy)


def with_and_without_baseline(
    scores: Array, v: Array, answer: Any, mask: Array | None = None, **settings: Any
) -> tuple[Estimate, Estimate]:
    """Return the estimates with the baseline b = E[log p(y | s)] and with b = 0.

    Both have the same mean. A moving baseline approaches the first b.

    Args:
        scores, v, answer, mask: As in every_draw.
        settings: The other settings of score_function.
    """
    draws = every_draw(scores, v, answer, mask)
    usual = float((draws.probability * draws.log_likelihood).sum())
    with_baseline = estimate(scores, v, answer, mask, baseline=usual, **settings)
    return with_baseline, estimate(scores, v, answer, mask, baseline=0.0, **settings)
