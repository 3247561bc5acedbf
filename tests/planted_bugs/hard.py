"""Bugs in hard attention: the output, the gradient of the choice, and the score function."""

from planted_bugs.bug import Bug

_PAIRS = "functional/hard.py"
_LAYER = "nn/attention/hard.py"
_TASK = "models/place_reader.py"
_DV = "dv = _over_draws(sample.swapaxes(-1, -2) @ dz, v)"
_LOG = "return _over_draws(dlog_prob[..., None] * (sample - weights), weights)"
_ENTROPY = "return -(dh[..., None] * weights * (_log(weights) + h[..., None]))"
_REWARD = "dlog_prob = -reward_weight * (log_likelihood - baseline) / log_likelihood.size"

CHOICES = (
    Bug(
        "hard attend: dv of the mean",
        "wrong term",
        _PAIRS,
        _DV,
        "dv = _over_draws(weights.swapaxes(-1, -2) @ dz, v)",
        of=2,
    ),
    Bug(
        "hard attend: one draw's dv",
        "missing sum",
        _PAIRS,
        "return dx.sum(0) if dx.ndim > x.ndim else dx",
        "return dx[0] if dx.ndim > x.ndim else dx",
    ),
    Bug(
        "hard attend: the scores get a gradient from z",
        "wrong term",
        _PAIRS,
        "dscores = array_module(weights).zeros_like(weights)",
        "dscores = straight_through_backward(dz, cache)[0]",
    ),
    Bug(
        "hard attend: the entropy instead of log p",
        "= for +=",
        _PAIRS,
        "dscores = dscores + entropy_backward",
        "dscores = entropy_backward",
    ),
    Bug(
        "straight through: softmax skipped",
        "dropped branch",
        _PAIRS,
        "return softmax_backward(dweights, weights), dv",
        "return dweights, dv",
    ),
    Bug("log p: sign", "sign", _PAIRS, _LOG, _LOG.replace("(sample - weights)", "(weights - sample)")),
    Bug(
        "log p: the normalizer left out",
        "dropped branch",
        _PAIRS,
        _LOG,
        _LOG.replace("(sample - weights)", "sample"),
    ),
    Bug(
        "log p: its slope in the weight",
        "wrong term",
        _PAIRS,
        _LOG,
        _LOG.replace("(sample - weights)", "(sample - sample * weights)"),
    ),
    Bug("entropy: sign", "sign", _PAIRS, _ENTROPY, _ENTROPY.replace("-(dh", "+(dh")),
    Bug(
        "entropy: 1 instead of H",
        "dropped branch",
        _PAIRS,
        _ENTROPY,
        _ENTROPY.replace(" + h[..., None]", " + 1"),
    ),
    Bug("entropy: a left out", "missing scale", _PAIRS, _ENTROPY, _ENTROPY.replace(" * weights", "")),
)

SCORE_FUNCTION = (
    Bug("score function: sign", "sign", _PAIRS, _REWARD, _REWARD.replace("-reward", "reward")),
    Bug(
        "score function: baseline times the reward",
        "wrong term",
        _PAIRS,
        _REWARD,
        _REWARD.replace("- baseline)", "* (1 - baseline))"),
    ),
    Bug(
        "score function: entropy's sign",
        "sign",
        _PAIRS,
        "full(sentences, -entropy_weight",
        "full(sentences, entropy_weight",
    ),
)

LAYER = (
    Bug(
        "HardAttention: gradient of the values lost",
        "dropped branch",
        _LAYER,
        "return dqueries, dvalues + dkeys",
        "return dqueries, dkeys",
    ),
    Bug(
        "HardAttention: gradient of the keys lost",
        "dropped branch",
        _LAYER,
        "return dqueries, dvalues + dkeys",
        "return dqueries, dvalues",
    ),
    Bug(
        "HardAttention: gradient of the entropy lost",
        "dropped branch",
        _LAYER,
        "dentropy=dentropy\n",
        "dentropy=None\n",
    ),
    Bug(
        "Reader: log-softmax skipped",
        "dropped branch",
        _TASK,
        "dlogits = log_softmax_backward(dlog_probs, cache.log_probs)",
        "dlogits = dlog_probs",
    ),
)

HARD = (*CHOICES, *SCORE_FUNCTION, *LAYER)
