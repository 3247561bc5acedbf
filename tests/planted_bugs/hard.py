"""Bugs in hard attention: the output, the gradient of the choice, and the score function."""

from planted_bugs.bug import Place

BUGS = {
    "functional/hard.py": {
        Place("dv = _over_draws(sample.swapaxes(-1, -2) @ dz, v)", nth=1, of=2): {
            "hard attend: dv of the mean": "sample → weights"
        },
        "return dx.sum(0) if dx.ndim > x.ndim else dx": {
            "hard attend: one draw's dv": "return dx[0] if dx.ndim > x.ndim else dx"
        },
        "dscores = array_module(weights).zeros_like(weights)": {
            "hard attend: the scores get a gradient from z": (
                "dscores = straight_through_backward(dz, cache)[0]"
            )
        },
        "dscores = dscores + entropy_backward": {
            "hard attend: the entropy instead of log p": "dscores = entropy_backward"
        },
        "return softmax_backward(dweights, weights), dv": {
            "straight through: softmax skipped": "return dweights, dv"
        },
        "return _over_draws(dlog_prob[..., None] * (sample - weights), weights)": {
            "log p: sign": "return _over_draws(dlog_prob[..., None] * (weights - sample), weights)",
            "log p: the normalizer left out": "(sample - weights) → sample",
            "log p: its slope in the weight": "- weights → - sample * weights",
        },
        "return -(dh[..., None] * weights * (_log(weights) + h[..., None]))": {
            "entropy: sign": "return +(dh[..., None] * weights * (_log(weights) + h[..., None]))",
            "entropy: 1 instead of H": "+ h[..., None] → + 1",
            "entropy: a left out": "None] * weights * ( → None] * (",
        },
        "dlog_prob = -reward_weight * (log_likelihood - baseline) / log_likelihood.size": {
            "score function: sign": "-reward_weight → reward_weight",
            "score function: baseline times the reward": "- baseline → * (1 - baseline)",
        },
        "full(sentences, -entropy_weight": {
            "score function: entropy's sign": "full(sentences, entropy_weight"
        },
    },
    "nn/attention/hard.py": {
        "return dqueries, dvalues + dkeys": {
            "HardAttention: gradient of the values lost": "return dqueries, dkeys",
            "HardAttention: gradient of the keys lost": "return dqueries, dvalues",
        },
        "dentropy=dentropy\n": {"HardAttention: gradient of the entropy lost": "dentropy=None\n"},
    },
    "models/place_reader.py": {
        "dlogits = log_softmax_backward(dlog_probs, cache.log_probs)": {
            "Reader: log-softmax skipped": "dlogits = dlog_probs"
        }
    },
}
