"""Chapters 18 to 21: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.functional import softmax_backward
from npformer.functional import unit_weights_backward as unit_weights_backward_
from npformer.learn.exercises.plain.registry import mistake, plain

SIGMA = " / sigma**2"
DLOGIT = "dp * lengths * share * (1 - share)"
DTANH = " * (1 - hidden**2)"
LOG = "np.log(np.where(a > 0, a, 1))"
OWN_SUM = "(dy - slope * (dy * y).sum(-1, keepdims=True))"
SLOPE = '1 if measure == "sum" else y'
DV = "weights[..., None] * dy[..., None, :]"
SUMS = "np.where(distance == r, y, 0).sum(-1)"
DP = "np.where(before, dweights - dlast, 0)"


@plain(
    "gaussian-window-backward",
    mistake(
        "dp is divided by 2 sigma²: the 2 is cancelled by the derivative of the square, so dp is "
        "half of the correct one",
        SIGMA,
        " / (2 * sigma**2)",
    ),
    mistake("dp is divided by sigma instead of sigma²", SIGMA, " / sigma"),
    mistake("the divisor sigma² is left out in dp", SIGMA, ""),
    mistake("dp is multiplied by sigma² instead of divided", SIGMA, " * sigma**2"),
    mistake("the sign of dp is wrong", "dp = (", "dp = -("),
    mistake("dp is averaged over the row instead of summed", ".sum(-1)", ".mean(-1)"),
    mistake("dweights is dy itself: the factor bell is left out", "dweights = dy * bell", "dweights = dy"),
    mistake("the factor bell is left out in dp", "dbell * bell * away", "dbell * away"),
    mistake("the factor away is left out in dp", "dbell * bell * away", "dbell * bell"),
    mistake("the factor away is squared in dp", "away)", "away**2)"),
    mistake(
        "weights and bell are exchanged: the gradient of each factor is dy times the other factor",
        "dweights = dy * bell",
        "dweights = dy * weights",
        "dbell = dy * weights",
        "dbell = dy * bell",
    ),
    mistake("the factor weights is left out in dp", "dbell = dy * weights", "dbell = dy"),
)
def gaussian_window_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of weights that a Gaussian around a predicted position multiplies."""
    weights, bell, away, sigma = cache
    dweights = dy * bell
    dbell = dy * weights
    dp = (dbell * bell * away).sum(-1) / sigma**2
    return dweights, dp


@plain(
    "predict-position-backward",
    mistake("the factor lengths is left out", DLOGIT, "dp * share * (1 - share)"),
    mistake(
        "the derivative of the sigmoid, the factor share (1 - share), is left out", DLOGIT, "dp * lengths"
    ),
    mistake(
        "the derivative of tanh is used for share, which is a sigmoid",
        DLOGIT,
        "dp * lengths * (1 - share**2)",
    ),
    mistake("the derivative of tanh, the factor 1 - hidden², is left out", DTANH, ""),
    mistake(
        "the derivative of the sigmoid is used for hidden, which is a tanh", DTANH, " * hidden * (1 - hidden)"
    ),
    mistake("the factor v is left out", " * v", ""),
    mistake(
        "dv is divided by the number of states: it must be a sum, not averaged",
        "dv = dlogit.reshape(-1)",
        "dv = dlogit.reshape(-1) / dlogit.size",
    ),
    mistake(
        "dweight is divided by the number of states: it must be a sum, not averaged",
        "dweight = ",
        "dweight = 1 / dlogit.size * ",
    ),
    mistake("the factor lengths is applied twice", "dp * lengths", "dp * lengths * lengths"),
    mistake("the factor share is left out in the derivative of the sigmoid", "share * (1", "(1"),
    mistake("the factor 1 - share is left out in the derivative of the sigmoid", " * (1 - share)", ""),
)
def predict_position_backward(dp: Any, cache: Any) -> Any:
    """Return the gradients of the predicted position S sigmoid(vᵀ tanh(weight h))."""
    h, weight, v, lengths, hidden, share = cache
    dlogit = dp * lengths * share * (1 - share)
    dv = dlogit.reshape(-1) @ hidden.reshape(-1, hidden.shape[-1])
    dtotal = dlogit[..., None] * v * (1 - hidden**2)
    dweight = h.reshape(-1, h.shape[-1]).T @ dtotal.reshape(-1, dtotal.shape[-1])
    return dtotal @ weight.T, dweight, dv


@plain(
    "entropy-backward",
    mistake("the sign is wrong", "-dh[", "dh["),
    mistake(
        "only dH/da is used: the backward pass of the softmax is left out, which puts H in place of 1",
        "* (log_a + h[..., None])",
        "* (log_a + 1)",
    ),
    mistake(
        "the backward pass of the softmax is left out: it is only dH/da",
        "* a * (log_a + h[..., None])",
        "* (log_a + 1)",
    ),
    mistake("the term h (the entropy) is left out", " + h[..., None]", ""),
    mistake("the term h (the entropy) has the wrong sign", "log_a + h", "log_a - h"),
    mistake("the factor a in front is left out", " * a * (", " * ("),
    mistake("the logarithm has base 2 instead of base e", "np.log(", "np.log2("),
    mistake("the factor dh is left out", "-dh[..., None] * a", "-a"),
    mistake("the logarithm is left out: a is used instead of log a", LOG, "a"),
    mistake(
        "log 0 is not avoided where a weight is 0, which gives NaN", f"np.where(a > 0, {LOG}, 0)", "np.log(a)"
    ),
)
def entropy_backward(dh: Any, cache: Any) -> Any:
    """Return the gradient of the scores from that of the entropy of their softmax."""
    a, h = cache.weights, cache.h
    log_a = np.where(a > 0, np.log(np.where(a > 0, a, 1)), 0)
    return -dh[..., None] * a * (log_a + h[..., None])


@plain(
    "score-function",
    mistake(
        "the sign of dlog_prob is wrong: the loss has a minus sign",
        "dlog_prob = -reward",
        "dlog_prob = reward",
    ),
    mistake("the baseline is not subtracted", "(log_likelihood - baseline)", "log_likelihood"),
    mistake(
        "the baseline is added instead of subtracted: its sign is wrong",
        "log_likelihood - baseline",
        "log_likelihood + baseline",
    ),
    mistake(
        "dlog_prob is divided by the number of sentences only: the mean is over samples and sentences",
        "-reward / log_likelihood.size",
        "-reward / B",
    ),
    mistake(
        "dlog_prob is divided by the length of axis 0 (the samples) only: the mean is over samples "
        "and sentences",
        "-reward / log_likelihood.size",
        "-reward / len(log_likelihood)",
    ),
    mistake(
        "dlog_prob is not divided by the number of samples times sentences: the loss is a mean",
        "-reward / log_likelihood.size",
        "-reward",
    ),
    mistake("the sign of dentropy is wrong: the loss has a minus sign", "-entropy_weight", "entropy_weight"),
    mistake(
        "dentropy is not divided by the number of sentences: the loss is a mean",
        "-entropy_weight / B",
        "-entropy_weight",
    ),
    mistake(
        "dentropy is divided by the number of samples times sentences, and the entropy does not "
        "depend on the sample: divide by the sentences",
        "-entropy_weight / B",
        "-entropy_weight / log_likelihood.size",
    ),
    mistake(
        "the parentheses are wrong: the baseline is subtracted after the product with reward_weight",
        "(log_likelihood - baseline) * reward_weight",
        "log_likelihood * reward_weight - baseline",
    ),
    mistake("the factor reward_weight is left out", " * reward_weight", ""),
    mistake("the factor entropy_weight is left out", "-entropy_weight / B", "-1 / B"),
    mistake(
        "exp(log_likelihood) is used: the reward is the log-likelihood itself",
        "(log_likelihood - baseline)",
        "(np.exp(log_likelihood) - baseline)",
    ),
    mistake(
        "reward_weight and entropy_weight are exchanged",
        "* reward_weight",
        "* entropy_weight",
        "-entropy_weight",
        "-reward_weight",
    ),
)
def score_function(
    log_likelihood: Any, baseline: Any = 0.0, *, reward_weight: Any = 1.0, entropy_weight: Any = 0.0
) -> Any:
    """Return the score function estimate of the gradient of sampled choices."""
    B = log_likelihood.shape[-1]
    reward = (log_likelihood - baseline) * reward_weight
    dlog_prob = -reward / log_likelihood.size
    dentropy = np.full(B, -entropy_weight / B)
    return dlog_prob[..., None], dentropy[..., None]


@plain(
    "unit-weights-backward",
    mistake("the term through the length, with the sum over the row, is left out", OWN_SUM, "dy"),
    mistake("the divisor length is left out", ") / length", ")"),
    mistake("the sign of the term with the sum is wrong", "dy - slope", "dy + slope"),
    mistake(
        'the case "euclidean" is treated like "sum": the derivative of the Euclidean length is y_j and not 1',
        SLOPE,
        "1",
    ),
    mistake(
        'the case "sum" is treated like "euclidean": the derivative of the sum is 1 and not y_j', SLOPE, "y"
    ),
    mistake("the two cases of measure are exchanged", SLOPE, 'y if measure == "sum" else 1'),
    mistake("one sum is used for all rows: compute the sum of each row", ".sum(-1, keepdims=True)", ".sum()"),
    mistake("the sum runs over the wrong axis: over axis 0 instead of the last one", ".sum(-1", ".sum(0"),
    mistake("the factor y is left out in the sum: dy must be weighted with y", "(dy * y).sum", "dy.sum"),
    mistake("it is divided by length twice", ") / length", ") / length**2"),
    mistake(
        "the term with the sum is divided by length twice: y is divided by it already",
        OWN_SUM + " / length",
        "dy / length - slope * (dy * y).sum(-1, keepdims=True) / length**2",
    ),
    mistake(
        'the term with the sum is divided by length twice in the case "sum": y is divided by it already',
        OWN_SUM + " / length",
        'dy / length - slope * (dy * y).sum(-1, keepdims=True) / length ** (2 if measure == "sum" else 1)',
    ),
    mistake("it is multiplied by length instead of divided", ") / length", ") * length"),
    mistake("the sum over the row is averaged", ".sum(", ".mean("),
)
def unit_weights_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of weights that are divided by their sum or their norm."""
    y, length, measure = cache
    slope = 1 if measure == "sum" else y
    return (dy - slope * (dy * y).sum(-1, keepdims=True)) / length


@plain(
    "latent-attend-backward",
    mistake("unit_weights_backward is left out", "unit_weights_backward_(dweights, unit)", "dweights"),
    mistake(
        "softmax_backward is left out for the latent weights", "softmax_backward(dlatent, latent)", "dlatent"
    ),
    mistake(
        "softmax_backward is left out for the active weights", "softmax_backward(dactive, active)", "dactive"
    ),
    mistake("active is not transposed in the gradient of latent", "active.swapaxes(-1, -2)", "active"),
    mistake(
        "dw and latent are exchanged in the gradient of active: it is transposed",
        "dw[..., :, None] * latent[..., None, :]",
        "latent[..., :, None] * dw[..., None, :]",
    ),
    mistake("dv is computed from latent instead of weights", DV, DV.replace("weights", "latent")),
    mistake("dv is computed from dweights instead of weights", DV, DV.replace("weights", "dweights")),
    mistake(
        "dv is dy itself for each j: the factor weights is left out", DV, "np.ones_like(v) * dy[..., None, :]"
    ),
    mistake("dlatent is computed from dweights instead of dw", "@ dw[..., None]", "@ dweights[..., None]"),
    mistake("dactive is computed from dweights instead of dw", "dw[..., :, None]", "dweights[..., :, None]"),
)
def latent_attend_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of attention over latent keys and values."""
    v, latent, active, weights, unit = cache.v, cache.latent, cache.active, cache.weights, cache.unit
    dweights = (v @ dy[..., None])[..., 0]
    dv = weights[..., None] * dy[..., None, :]
    dw = unit_weights_backward_(dweights, unit)
    dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]
    dactive = dw[..., :, None] * latent[..., None, :]
    return softmax_backward(dlatent, latent), softmax_backward(dactive, active), dv


@plain(
    "collect-by-distance",
    mistake(
        "an assignment keeps only the last key of each distance: several keys with the same distance "
        "must be added",
        SUMS,
        "np.where(distance == r, np.where((np.cumsum((distance == r)[:, ::-1], 1) == 1)[:, ::-1], y, "
        "0), 0).sum(-1)",
    ),
    mistake(
        "the mean over the keys of each distance is computed instead of the sum",
        SUMS,
        SUMS + " / np.maximum(1, (distance == r).sum(-1))",
    ),
    mistake(
        "it is divided by the number of all keys: the entries are averaged instead of summed",
        ".sum(-1)",
        ".mean(-1)",
    ),
    mistake(
        "the comparison is <= instead of ==: the sums are cumulative, up to the distance r", "== r", "<= r"
    ),
    mistake("the comparison is >= instead of ==: the sums contain all larger distances", "== r", ">= r"),
    mistake("the comparison is the opposite: all keys with another distance are summed", "== r", "!= r"),
    mistake(
        "the last distance, n_distances - 1, is left out", "range(n_distances)", "range(n_distances - 1)"
    ),
    mistake("the first distance, 0, is left out", "range(n_distances)", "range(1, n_distances)"),
    mistake("the largest entry is used instead of the sum", ".sum(-1)", ".max(-1)"),
    mistake("the distances are in the reverse order", "== r", "== n_distances - 1 - r"),
)
def collect_by_distance(y: Any, distance: Any, n_distances: Any) -> Any:
    """Return the sum over all pairs of a query and a key at each distance."""
    x = np.zeros((*y.shape[:-1], n_distances), y.dtype)
    for r in range(n_distances):
        x[..., r] = np.where(distance == r, y, 0).sum(-1)
    return x


@plain(
    "mix-states-backward",
    mistake(
        "dlast is left out in dp: p_n is also subtracted from the last weight", "dweights - dlast", "dweights"
    ),
    mistake("the sign of dlast is wrong in dp", "dweights - dlast", "dweights + dlast"),
    mistake(
        "the condition before is left out in dp: the gradient should be 0 from the last step on",
        DP,
        "dweights - dlast",
    ),
    mistake(
        "the factor weights is left out in dstates", "weights[..., None] * dy", "np.ones_like(states) * dy"
    ),
    mistake(
        "the gradient of a weight is averaged over D instead of summed",
        "(states * dy).sum",
        "(states * dy).mean",
    ),
    mistake("last is used instead of before in dp", DP, "np.where(last, dweights - dlast, 0)"),
    mistake(
        "dlast is the sum over all steps: only the last step of each position counts",
        "np.where(last, dweights, 0).sum(0)",
        "dweights.sum(0)",
    ),
    mistake(
        "before is used instead of weights in dstates", "weights[..., None] * dy", "before[..., None] * dy"
    ),
    mistake("last is used instead of weights in dstates", "weights[..., None] * dy", "last[..., None] * dy"),
    mistake(
        "before is used instead of last in dlast",
        "np.where(last, dweights, 0)",
        "np.where(before, dweights, 0)",
    ),
    mistake(
        "dlast is the gradient of the weight at step N: each position has its own last step",
        "np.where(last, dweights, 0).sum(0)",
        "dweights[-1]",
    ),
)
def mix_states_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of the states that adaptive halting mixes, and of their probabilities."""
    states, weights, before, last = cache
    dstates = weights[..., None] * dy
    dweights = (states * dy).sum(-1)
    dlast = np.where(last, dweights, 0).sum(0)
    dp = np.where(before, dweights - dlast, 0)
    return dstates, dp
