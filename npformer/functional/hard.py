"""Hard attention: each query reads one value, and not a weighted mean of all values as in functional.attend.

The value is drawn: s ~ Multinoulli(softmax(scores)). A small change of the scores usually leaves the draw and
the output unchanged. At some points the draw changes, and the output jumps. So the gradient of the output
with respect to the scores is 0 wherever it exists. But the probability of the draw is a smooth function of
the scores. In place of the gradient of the output, score_function therefore uses the gradient of the
log-probability of the draw. Its docstring explains which factors make this an unbiased estimate.

Source: Xu et al. 2015, section 4.1; Williams 1992.
"""

from typing import NamedTuple

from npformer.backend import Array, Generator, array_module, random_uniform
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32
from npformer.functional.masks import mask_scores
from npformer.functional.softmax import softmax, softmax_backward


def one_hot_argmax(weights: Array) -> Array:
    """Choose the most probable value of each query, as in inference. If several are equal, choose the first.

    Returns:
        Bool, of the shape (..., T, S) of the weights. Each row contains True once, or never if all its
        weights are 0.
    """
    xp = array_module(weights)
    best = weights.real.argmax(-1)[..., None] == xp.arange(weights.shape[-1])
    return best & (weights.real > 0)


@sums_in_float32
def one_hot_sample(weights: Array, rng: Generator, draws: int | None = None) -> Array:
    """Draw one value for each query with these probabilities: s ~ Multinoulli(weights).

    A value of weight 0 is never drawn.

    Args:
        weights: The probabilities, of shape (..., T, S).
        rng: The generator.
        draws: The number N of draws for each query. The default is one draw, without the axis of draws.

    Returns:
        Bool, of shape (..., T, S), or (N, ..., T, S) for N draws. Each row contains True once, or never if
        all its weights are 0.
    """
    xp = array_module(weights)
    # let the weights be the lengths of adjacent intervals: a uniform random point falls into one of them
    ends = weights.real.cumsum(-1)  # (..., T, S)
    draws_axis = () if draws is None else (draws,)
    point = random_uniform(rng, (*draws_axis, *ends.shape[:-1]), weights)[..., None] * ends[..., -1:]
    # its index is the number of intervals that end before the point, which is S if all are empty
    index = (ends <= point).sum(-1)  # ([N,] ..., T)
    return index[..., None] == xp.arange(weights.shape[-1])


@cache_class
class HardAttendCache(NamedTuple):
    """The cache of hard_attend. The figures show its sample and weights."""

    v: Array  # (..., S, L) values
    sample: Array  # ([N,] ..., T, S) bool: True at the value that the query read
    weights: Array  # (..., T, S) the probabilities: rows sum to 1, or are 0

    @property
    def log_prob(self) -> Array:
        """The log-probability log p(s) of the draw, ([N,] ..., T)."""
        return _log_probability(self.weights, self.sample)

    @property
    def entropy(self) -> Array:
        """The entropy of each query's weights, (..., T): 0 if one weight is 1, log S if all are equal."""
        return _entropy(self.weights)


def hard_attend(
    scores: Array,
    v: Array,
    mask: Array | None = None,
    *,
    rng: Generator | None = None,
    draws: int | None = None,
    sample: Array | None = None,
) -> tuple[Array, HardAttendCache]:
    """Compute z = Σ_s sample_s v_s, where sample ~ Multinoulli(softmax(scores)): each query reads one value.

    Args:
        scores: The scores, of shape (..., T, S).
        v: The values, of shape (..., S, L).
        mask: Bool, broadcastable to (..., T, S). True means that the query may attend to the key.
        rng: The generator. Without it, each query reads its most probable value.
        draws: The number N of draws for each query.
        sample: Bool, of shape ([N,] ..., T, S). A sample that is used instead of a new draw.

    Returns:
        z, of shape (..., T, L), or (N, ..., T, L) for N draws, and the cache. z is 0 for a query that may
        attend to no key.

    Raises:
        UserError: If a mask has another dtype or shape, or if draws is given without rng.

    Source: Xu et al. 2015, section 4.1.
    """
    if draws is not None and rng is None:
        raise UserError(f"{draws} draws need a generator: give rng=np.random.default_rng(seed)")
    weights = _weights(scores, mask)
    if sample is None:
        sample = one_hot_argmax(weights) if rng is None else one_hot_sample(weights, rng, draws)
    return sample @ v, HardAttendCache(v, sample, weights)


@sums_in_float32
def hard_attend_backward(
    dz: Array, cache: HardAttendCache, *, dlog_prob: Array | None = None, dentropy: Array | None = None
) -> tuple[Array, Array]:
    """Compute the gradients of z = Σ_s sample_s v_s, of log p(sample) and of the entropy.

    Without dlog_prob and dentropy, dscores is 0, since the sample is a constant in z.

    Args:
        dz: The gradient of z, of shape ([N,] ..., T, L).
        cache: The cache of hard_attend.
        dlog_prob: The gradient of log p(sample), broadcastable to ([N,] ..., T).
        dentropy: The gradient of the entropy, broadcastable to (..., T).

    Returns:
        dscores, of shape (..., T, S), and dv, of shape (..., S, L).
    """
    v, sample, weights = cache
    # z = sample v. All draws used the same v, so their gradients are added
    dv = _over_draws(sample.swapaxes(-1, -2) @ dz, v)
    dscores = array_module(weights).zeros_like(weights)
    if dlog_prob is not None:
        dscores = dscores + log_probability_backward(dlog_prob, LogProbabilityCache(sample, weights))
    if dentropy is not None:
        dscores = dscores + entropy_backward(dentropy, EntropyCache(weights, cache.entropy))
    return dscores, dv


def straight_through_backward(dz: Array, cache: HardAttendCache) -> tuple[Array, Array]:
    """Compute dscores as in soft attention, in which z is the weighted mean of the values.

    The forward pass draws one value, but the backward pass treats z as the weighted mean. This estimate needs
    no reward, and it varies little between draws. But it is biased: its expected value is not the gradient of
    the expected loss.

    Args:
        dz: The gradient of z, of shape ([N,] ..., T, L).
        cache: The cache of hard_attend.

    Returns:
        dscores, of shape (..., T, S), and dv, of shape (..., S, L).

    Source: Bengio et al. 2013, section 4.
    """
    v, sample, weights = cache
    # z = sample v
    dv = _over_draws(sample.swapaxes(-1, -2) @ dz, v)
    # as if z were weights v
    dweights = _over_draws(dz @ v.swapaxes(-1, -2), weights)  # (..., T, S)
    # weights = softmax(scores)
    return softmax_backward(dweights, weights), dv


@cache_class
class LogProbabilityCache(NamedTuple):
    """The cache of log_probability."""

    sample: Array  # ([N,] ..., T, S) bool
    weights: Array  # (..., T, S)


def log_probability(
    scores: Array, sample: Array, mask: Array | None = None
) -> tuple[Array, LogProbabilityCache]:
    """Compute log p(s) = log softmax(scores)_s of a sample s, and 0 if a query may not attend to any key.

    Args:
        scores: The scores, of shape (..., T, S).
        sample: Bool, of shape ([N,] ..., T, S). It must not choose a masked key, whose log p(s) is -inf.
        mask: Bool, broadcastable to (..., T, S). True means that the query may attend to the key.

    Returns:
        log p(s), of shape ([N,] ..., T), and the cache.
    """
    weights = _weights(scores, mask)
    return _log_probability(weights, sample), LogProbabilityCache(sample, weights)


def log_probability_backward(dlog_prob: Array, cache: LogProbabilityCache) -> Array:
    """Return dscores = dlog_prob (sample - weights), of shape (..., T, S)."""
    sample, weights = cache
    # log p(s) = scores_s - log Σ_j exp(scores_j). The derivative of the first term with respect to scores_j
    # is 1 at j = s and 0 elsewhere. That of the logarithm is exp(scores_j) / Σ exp(scores) = weights_j
    return _over_draws(dlog_prob[..., None] * (sample - weights), weights)


@cache_class
class EntropyCache(NamedTuple):
    """The cache of entropy."""

    weights: Array  # (..., T, S)
    h: Array  # (..., T)


def entropy(scores: Array, mask: Array | None = None) -> tuple[Array, EntropyCache]:
    """Compute H = -Σ_s a_s log a_s, where a = softmax(scores), for each query.

    Shapes: scores (..., T, S), mask as in attend -> H (..., T).

    Source: Shannon 1948.
    """
    weights = _weights(scores, mask)
    h = _entropy(weights)
    return h, EntropyCache(weights, h)


def entropy_backward(dh: Array, cache: EntropyCache) -> Array:
    """Return dscores = -dh a (log a + H), of shape (..., T, S), where a = softmax(scores)."""
    weights, h = cache
    # H = -Σ_i a_i log a_i, so dH/da_i = -(log a_i + 1). With da_i/dscores_j = a_i ([i = j] - a_j), the chain
    # rule gives
    # dH/dscores_j = -a_j (log a_j + 1) + a_j Σ_i a_i (log a_i + 1)
    #              = -a_j (log a_j + 1) + a_j (-H + 1) = -a_j (log a_j + H)
    return -(dh[..., None] * weights * (_log(weights) + h[..., None]))


def score_function(
    log_likelihood: Array,
    baseline: Array | float = 0.0,
    *,
    reward_weight: float = 1.0,
    entropy_weight: float = 0.0,
) -> tuple[Array, Array]:
    """Return the gradients (dlog_prob, dentropy) of the expected loss, for hard_attend_backward.

        loss = -mean over draws and sentences of [log p(y | s) + λ_e H]
        dlog_prob = -λ_r (log p(y | s) - b) / (N B),  dentropy = -λ_e / B

    With this gradient, the optimizer makes a draw more probable if the answer was more probable with it than
    the baseline b. For λ_r = 1 it is an unbiased estimate of the gradient of the loss. For a function f(s) of
    the draw, such as log p(y | s), the expected value is Σ_s p(s) f(s), and its gradient is

        ∇ Σ_s p(s) f(s) = Σ_s p(s) ∇f(s) + Σ_s f(s) ∇p(s),   where   ∇p(s) = p(s) ∇ log p(s).

    So the gradient is the expected value of ∇f(s) + f(s) ∇ log p(s). The baseline does not change this
    expected value, since Σ_s b ∇p(s) = b ∇1 = 0 if b does not depend on the draw. It reduces the variance.

    Args:
        log_likelihood: log p(y | s) of the whole answer of each sentence for each draw, of shape ([N,] B).
        baseline: The baseline b.
        reward_weight: λ_r. It is 1 for the exact gradient.
        entropy_weight: λ_e.

    Returns:
        dlog_prob, of shape ([N,] B, 1), which is the same for all T queries of a sentence, and dentropy, of
        shape (B, 1).

    Source: Xu et al. 2015, section 4.1; Williams 1992.
    """
    sentences = log_likelihood.shape[-1]
    dlog_prob = -reward_weight * (log_likelihood - baseline) / log_likelihood.size
    dentropy = array_module(log_likelihood).full(sentences, -entropy_weight / sentences, log_likelihood.dtype)
    return dlog_prob[..., None], dentropy[..., None]


def _weights(scores: Array, mask: Array | None) -> Array:
    """Return the softmax of the masked scores."""
    scores, _ = mask_scores(scores, mask)
    return softmax(scores)[0]


def _log(weights: Array) -> Array:
    """Return the logarithm of the positive weights, and 0 for the others, so that 0 log 0 = 0."""
    xp = array_module(weights)
    return xp.log(xp.where(weights.real > 0, weights, 1))


def _log_probability(weights: Array, sample: Array) -> Array:
    xp = array_module(weights)
    return xp.log(xp.where(sample, weights, 1)).sum(-1)  # log 1 = 0 at the values that were not drawn


@sums_in_float32
def _entropy(weights: Array) -> Array:
    return -(weights * _log(weights)).sum(-1)


def _over_draws(dx: Array, x: Array) -> Array:
    """Sum the gradient dx over the draws, if it has an axis of draws, since all draws used the same x."""
    return dx.sum(0) if dx.ndim > x.ndim else dx
