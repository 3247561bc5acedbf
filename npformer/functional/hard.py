"""Hard attention: each query reads one value, where npformer.functional.look_up reads a mean of all.

Which one is drawn, s ~ Multinoulli(softmax(scores)). A draw jumps from value to value and has no slope, so
nothing comes back through it to the scores. They learn by another way: the probability of what was drawn is
smooth, and the gradient of its logarithm, times how well the answer went, is on average the gradient of the
answer's expected quality (score_function, below).
Source: Xu et al. 2015, section 4.1; Williams 1992.
"""

from typing import Any, NamedTuple

from npformer.backend import array_module, random_uniform
from npformer.errors import UserError
from npformer.functional.masking import mask_scores
from npformer.functional.softmax import softmax, softmax_backward


def likeliest(weights):
    """The choice of the largest weight, the first where several are: what is done at inference.

    Shapes: weights (..., T, S) -> sample (..., T, S) bool, True at one place a row; at none where all are 0.
    """
    xp = array_module(weights)
    best = weights.real.argmax(-1)[..., None] == xp.arange(weights.shape[-1])
    return best & (weights.real > 0)


def multinoulli(weights, rng, draws=None):
    """Choices drawn with these probabilities: s ~ Multinoulli(weights).

    A place of weight 0 is never chosen. draws: how many are drawn for each row; they stand in front.
    Shapes: weights (..., T, S) -> sample (..., T, S), or (N, ..., T, S) for N draws, bool, True at one place
    a row; at none where all weights are 0.
    """
    xp = array_module(weights)
    # the weights as stretches of a line, one after the other: a uniform point on it falls into one of them
    ends = weights.real.cumsum(-1)  # (..., T, S)
    lead = () if draws is None else (draws,)
    point = random_uniform(rng, (*lead, *ends.shape[:-1]), weights)[..., None] * ends[..., -1:]
    chosen = (ends <= point).sum(-1)  # ([N,] ..., T) how many stretches end before it; S where all are empty
    return chosen[..., None] == xp.arange(weights.shape[-1])


class HardLookUpCache(NamedTuple):
    """What hard_look_up_backward needs, and what the figures show."""

    v: Any  # (..., S, L) values
    sample: Any  # ([N,] ..., T, S) bool: True at the value that the query reads
    weights: Any  # (..., T, S) the probability of each: rows sum to 1, or are 0

    @property
    def log_prob(self):
        """log p(s) of what was drawn, ([N,] ..., T)."""
        return _log_probability(self.weights, self.sample)

    @property
    def entropy(self):
        """How undecided each query was, (..., T): 0 where it was sure, log S where all were alike."""
        return _entropy(self.weights)


def hard_look_up(scores, v, mask=None, *, rng=None, draws=None, sample=None):
    """z = Σ_s sample_s v_s: each query reads one value, drawn by sample ~ Multinoulli(softmax(scores)).

    Without rng it is the likeliest. draws: how many are drawn for each query; they stand in front of z.
    sample, where given, is taken for what was drawn.
    Shapes: scores (..., T, S), v (..., S, L), mask bool broadcastable to (..., T, S)
    -> z (..., T, L), or (N, ..., T, L) for N draws. A query that may look at nothing reads 0.
    Errors: UserError for a mask of another dtype or shape, or draws without rng.
    Source: Xu et al. 2015, section 4.1.
    """
    if draws is not None and rng is None:
        raise UserError(f"{draws} draws need a generator: give rng=np.random.default_rng(seed)")
    weights = _weights(scores, mask)
    if sample is None:
        sample = likeliest(weights) if rng is None else multinoulli(weights, rng, draws)
    return sample @ v, HardLookUpCache(v, sample, weights)


def hard_look_up_backward(dz, cache, *, dlog_prob=None, dentropy=None):
    """Gradients (dscores, dv) of z = Σ_s sample_s v_s, of log p(sample) and of the entropy.

    Without the last two the scores get 0: a small change of them changes no draw.
    Shapes: dz ([N,] ..., T, L), dlog_prob broadcastable to ([N,] ..., T), dentropy to (..., T).
    """
    v, sample, weights = cache
    # z = sample v, where the sample is as given: all draws read the same v
    dv = _over_draws(sample.swapaxes(-1, -2) @ dz, v)
    dscores = array_module(weights).zeros_like(weights)
    if dlog_prob is not None:
        dscores = dscores + log_probability_backward(dlog_prob, LogProbabilityCache(sample, weights))
    if dentropy is not None:
        dscores = dscores + entropy_backward(dentropy, EntropyCache(weights, cache.entropy))
    return dscores, dv


def straight_through_backward(dz, cache):
    """Gradients (dscores, dv) as if z had been soft attention's mean: a wrong gradient that often serves.

    Forward a choice, backward a mean: what comes back needs no reward and varies little from draw to draw,
    but it is not the loss's gradient, for it tells the scores how z would change where it does not.
    Shapes: dz ([N,] ..., T, L). Source: Bengio et al. 2013, section 4.
    """
    v, sample, weights = cache
    # z = sample v
    dv = _over_draws(sample.swapaxes(-1, -2) @ dz, v)
    # as if z = weights v
    dweights = _over_draws(dz @ v.swapaxes(-1, -2), weights)  # (..., T, S)
    # weights = softmax(scores)
    return softmax_backward(dweights, weights), dv


class LogProbabilityCache(NamedTuple):
    """What log_probability_backward needs."""

    sample: Any  # ([N,] ..., T, S) bool
    weights: Any  # (..., T, S)


def log_probability(scores, sample, mask=None):
    """log p(s) = log softmax(scores)_s, of what was chosen; 0 for a query that could look at nothing.

    sample must be one that can be drawn: the logarithm of a masked place is -inf.
    Shapes: scores (..., T, S), sample ([N,] ..., T, S) bool, mask as in look_up -> ([N,] ..., T).
    """
    weights = _weights(scores, mask)
    return _log_probability(weights, sample), LogProbabilityCache(sample, weights)


def log_probability_backward(dlog_prob, cache):
    """dscores = dlog_prob (sample - weights): up where it went, down everywhere by the probability."""
    sample, weights = cache
    # log p(s) = scores_s - log Σ_j exp(scores_j). The first has the slope 1 at j = s; the second has
    # exp(scores_j) / Σ exp(scores) = weights_j at every j
    return _over_draws(dlog_prob[..., None] * (sample - weights), weights)


class EntropyCache(NamedTuple):
    """What entropy_backward needs."""

    weights: Any  # (..., T, S)
    h: Any  # (..., T)


def entropy(scores, mask=None):
    """H = -Σ_s a_s log a_s, with a = softmax(scores): how undecided each query is.

    Shapes: scores (..., T, S), mask as in look_up -> H (..., T). Source: Shannon 1948.
    """
    weights = _weights(scores, mask)
    h = _entropy(weights)
    return h, EntropyCache(weights, h)


def entropy_backward(dh, cache):
    """dscores = -dh a (log a + H)."""
    weights, h = cache
    # H = -Σ_i a_i log a_i, so dH/da_i = -(log a_i + 1); and da_i/dscores_j = a_i ([i = j] - a_j). Together
    # dH/dscores_j = -a_j (log a_j + 1) + a_j Σ_i a_i (log a_i + 1)
    #              = -a_j (log a_j + 1) + a_j (-H + 1) = -a_j (log a_j + H)
    return -(dh[..., None] * weights * (_log(weights) + h[..., None]))


def score_function(log_likelihood, baseline=0.0, *, reward_weight=1.0, entropy_weight=0.0):
    """What a loss tells the choices: the gradients (dlog_prob, dentropy) for hard_look_up_backward.

        loss = -mean over draws and sentences of [log p(y | s) + λ_e H]
        dlog_prob = -λ_r (log p(y | s) - b) / (N B),  dentropy = -λ_e / B

    Choices by which the answer became likelier than b become likelier. It is the loss's gradient, because
    ∇ Σ_s p(s) f(s) = Σ_s p(s) ∇f(s) + Σ_s f(s) ∇p(s), and ∇p(s) = p(s) ∇ log p(s): the mean over draws of
    ∇f(s) + f(s) ∇ log p(s). The baseline b changes nothing of that mean, since Σ_s b ∇p(s) = b ∇1 = 0, as
    long as it does not depend on the draw; it only makes the sum's terms smaller.
    λ_r is reward_weight, 1 for the exact gradient; λ_e is entropy_weight.
    Shapes: log_likelihood ([N,] B), that of the whole answer of each sentence under each draw
    -> dlog_prob ([N,] B, 1), the same for all T choices of the answer, and dentropy (B, 1).
    Source: Xu et al. 2015, section 4.1; Williams 1992.
    """
    sentences = log_likelihood.shape[-1]
    dlog_prob = -reward_weight * (log_likelihood - baseline) / log_likelihood.size
    dentropy = array_module(log_likelihood).full(sentences, -entropy_weight / sentences, log_likelihood.dtype)
    return dlog_prob[..., None], dentropy[..., None]


def _weights(scores, mask):
    scores, _ = mask_scores(scores, mask)
    return softmax(scores)[0]


def _log(weights):
    """The logarithm, where there is one: 0 log 0 counts as 0."""
    xp = array_module(weights)
    return xp.log(xp.where(weights.real > 0, weights, 1))


def _log_probability(weights, sample):
    xp = array_module(weights)
    return xp.log(xp.where(sample, weights, 1)).sum(-1)  # log 1 = 0 at all the others


def _entropy(weights):
    return -(weights * _log(weights)).sum(-1)


def _over_draws(dx, x):
    """The sum over the draws, where there are any: what they all come from gets a share of each."""
    return dx.sum(0) if dx.ndim > x.ndim else dx
