"""Hard attention: each query reads one position of the memory, drawn with the attention weights.

The functions at the end enumerate all possible draws of a small example. With them, the mean and the variance
of the estimated gradient can be computed exactly, and the mean can be compared with the true gradient.
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
from npformer.nn.checks import check_gradient
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

    The expected value of z_t is the result of soft attention, E[z_t] = Σ_s a_ts m_s, as in GlobalAttention.
    With train=True the positions are drawn: once, or N times with draws=N. Otherwise each query reads its
    most probable position. Shapes: queries (B, T, K), memory (B, S, M), mask bool (B, S), True at the
    positions that may be read -> context (B, T, M), or (N, B, T, M) for N draws. The context is 0 if all
    positions of a sentence are masked.

    Args:
        similarity: The layer that compares queries and memory, such as Similarity.
        straight_through: In the backward pass, use the gradient of soft attention instead of that of the
            draw. This estimate is biased, but it needs no rewards.

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
    ) -> tuple[Array, HardAttentionCache]:
        """Draw a position for each query, or choose the most probable one, and read the memory there.

        Args:
            queries: The queries, of shape (B, T, K).
            memory: The memory, of shape (B, S, M).
            mask: Bool, of shape (B, S). True at the positions that may be read. None for all True.
            train: True draws the positions, False chooses the most probable ones.
            rng: The generator of the draws. It is needed if train is True.
            draws: The number N of draws. The default is one draw, without the axis of draws.

        Returns:
            The context, of shape ([N,] B, T, M), and the cache.
        """
        if train and rng is None:
            raise UserError(
                "hard attention with train=True needs a generator: give rng=np.random.default_rng(seed)"
            )
        check_queries(queries, memory, self.similarity, "HardAttention")
        check_token_mask(mask, memory)
        allowed = None if mask is None else mask[:, None]  # (B, 1, S)
        scores, similarity_cache = self.similarity.forward(queries, memory)  # (B, T, S)
        sampling: dict[str, Any] = {"rng": rng, "draws": draws} if train else {}
        context, attend_cache = hard_attend(scores, memory, allowed, **sampling)  # ([N,] B, T, M)
        return context, HardAttentionCache(similarity_cache, attend_cache)

    def backward(
        self,
        dcontext: Array,
        cache: HardAttentionCache,
        *,
        dlog_prob: Array | None = None,
        dentropy: Array | None = None,
    ) -> tuple[Array, Array]:
        """Compute the gradients of the queries and of the memory.

        Args:
            dcontext: The gradient of the context, of shape ([N,] B, T, M).
            cache: The cache of forward.
            dlog_prob: The gradient of the log-probability of the draws, broadcastable to ([N,] B, T).
                functional.score_function computes it from the rewards.
            dentropy: The gradient of the entropy, broadcastable to (B, T).

        Returns:
            dqueries, of shape (B, T, K), and dmemory, of shape (B, S, M).

        Raises:
            UserError: If straight_through is True and dlog_prob or dentropy is given.
        """
        attend = cache.attend
        check_gradient(dcontext, (*attend.sample.shape[:-1], attend.v.shape[-1]), "HardAttention")
        if self.straight_through:
            if dlog_prob is not None or dentropy is not None:
                raise UserError("with straight_through there is no dlog_prob and no dentropy: leave them out")
            dscores, dvalues = straight_through_backward(dcontext, cache.attend)
        else:
            dscores, dvalues = hard_attend_backward(
                dcontext, cache.attend, dlog_prob=dlog_prob, dentropy=dentropy
            )
        # scores = similarity(queries, memory): the memory is used as keys and as values
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        return dqueries, dvalues + dkeys


class MovingBaseline:
    """A moving average of the log-likelihoods: b_k = .9 b_{k-1} + .1 log p(y | s_k), with b_0 = 0.

    For draw k, first pass the value b_{k-1} to score_function, then call update. In the other order,
    score_function would get b_k, which depends on draw k: log p - b_k = .9 (log p - b_{k-1}). The gradient of
    the scores would then be too small by the factor .9 (for N draws by the factor 1 - .1 / N).

    Args:
        decay: The weight of the old value, .9 in the formula above.

    Raises:
        UserError: If the decay is outside [0, 1].

    Source: Xu et al. 2015, section 4.1.
    """

    def __init__(self, decay: float = 0.9) -> None:
        if not 0 <= decay <= 1:
            raise UserError(f"decay is {decay}: it must be from 0 to 1")
        self.decay, self.value = decay, 0.0

    def update(self, log_likelihood: Array) -> None:
        """Move the value towards the mean of the last draws. Shapes: log_likelihood (...)."""
        self.value = self.decay * self.value + (1 - self.decay) * float(log_likelihood.mean())


def every_sample(n_queries: int, n_places: int) -> Array:
    """Return all possible draws of T queries from S positions. Shapes: -> (N, 1, T, S) bool, N = S^T."""
    positions = np.array(list(product(range(n_places), repeat=n_queries)))  # (N, T)
    return (positions[:, :, None] == np.arange(n_places))[:, None]


class Draws(NamedTuple):
    """All draws of one sentence."""

    sample: Array  # (N, 1, T, S) bool
    probability: Array  # (N,)
    log_likelihood: Array  # (N,) log p(y | s)
    entropy: Array  # () the sum of the entropies of all queries


def every_draw(scores: Array, v: Array, answer: Any, mask: Array | None = None) -> Draws:
    """Return all possible draws, the probability of each, and the log-likelihood of the answer for each.

    Args:
        scores: The scores of one sentence, of shape (1, T, S).
        v: The values, of shape (1, S, L).
        answer: A pair of functions (f, f_backward). f maps the context z (N, 1, T, L) to the log-likelihood
            log p(y | s) (N, 1) of the right answer.
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
        scores: The scores of one sentence, of shape (1, T, S).
        v: The values, of shape (1, S, L).
        answer: A pair of functions (f, f_backward). f maps the context z (N, 1, T, L) to the log-likelihood
            log p(y | s) (N, 1) of the right answer.
        mask: Bool, broadcastable to (1, T, S). True means that the query may read the position.
        entropy_weight: λ_e.

    Returns:
        The loss, of shape ().
    """
    draws = every_draw(scores, v, answer, mask)
    return -(draws.probability * draws.log_likelihood).sum() - entropy_weight * draws.entropy


class Estimate(NamedTuple):
    """The mean and the variance, over all draws, of the gradient estimated from one draw."""

    dscores: Array  # (1, T, S) the mean
    dv: Array  # (1, S, L) the mean
    # the variance of dscores, summed over its entries. The mean of N draws has 1/N of this variance
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
    """Return the mean and the variance of the gradient estimated from one draw.

    Args:
        scores: The scores of one sentence, of shape (1, T, S).
        v: The values, of shape (1, S, L).
        answer: A pair of functions (f, f_backward). f maps the context z (N, 1, T, L) to the log-likelihood
            log p(y | s) (N, 1) of the right answer.
        mask: Bool, broadcastable to (1, T, S). True means that the query may read the position.
        straight_through: Use the straight-through gradient instead of the score function.
        settings: The settings of score_function.
    """
    draws = every_draw(scores, v, answer, mask)
    grads = [_gradient(scores, v, answer, mask, s, straight_through, settings) for s in draws.sample[:, None]]
    dscores, dv = (np.stack(grad) for grad in zip(*grads, strict=True))  # (N, 1, T, S) and (N, 1, S, L)
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
    log_likelihood, answer_cache = f(z)  # (1, 1)
    dz = f_backward(-np.ones_like(log_likelihood), answer_cache)  # loss = -log p(y | s)
    if straight_through:
        return straight_through_backward(dz, cache)
    dlog_prob, dentropy = score_function(log_likelihood, **settings)
    return hard_attend_backward(dz, cache, dlog_prob=dlog_prob, dentropy=dentropy)


def with_and_without_baseline(
    scores: Array, v: Array, answer: Any, mask: Array | None = None, **settings: Any
) -> tuple[Estimate, Estimate]:
    """Return two estimates: with the baseline b = E[log p(y | s)], and with b = 0.

    Both have the same mean. The value of a MovingBaseline approaches the first b.

    Args:
        scores: The scores of one sentence, of shape (1, T, S).
        v: The values, of shape (1, S, L).
        answer: A pair of functions (f, f_backward). f maps the context z (N, 1, T, L) to the log-likelihood
            log p(y | s) (N, 1) of the right answer.
        mask: Bool, broadcastable to (1, T, S). True means that the query may read the position.
        settings: The other settings of score_function.
    """
    draws = every_draw(scores, v, answer, mask)
    expected = float((draws.probability * draws.log_likelihood).sum())  # E[log p(y | s)]
    with_baseline = estimate(scores, v, answer, mask, baseline=expected, **settings)
    return with_baseline, estimate(scores, v, answer, mask, baseline=0.0, **settings)
