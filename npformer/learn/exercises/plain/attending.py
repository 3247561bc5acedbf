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
    mistake("bell is squared in dp", "dbell * bell * away", "dbell * bell**2 * away"),
    mistake(
        "weights are a factor of dweights: it is dy times bell only",
        "dweights = dy * bell",
        "dweights = dy * bell * weights",
    ),
    mistake(
        "dp keeps an axis of length 1: there is one p for each row",
        ").sum(-1) /",
        ").sum(-1, keepdims=True) /",
    ),
    mistake(
        "one sum is used for all rows: each row has its own p",
        "(dbell * bell * away).sum(-1)",
        "(dbell * bell * away).sum() + 0 * dy[..., 0]",
    ),
    mistake(
        "away is squared, as in the exponent: its derivative contains away once",
        "* away).",
        "* away**2 / 2).",
    ),
    mistake(
        "dp contains only the nearest place: the places of the row must be summed",
        "(dbell * bell * away).sum(-1)",
        "np.take_along_axis(dbell * bell * away, np.abs(away).argmin(-1)[..., None], -1)[..., 0]",
    ),
    mistake(
        "the factor 2 of the square is not cancelled: dp is twice the correct one", SIGMA, " * 2 / sigma**2"
    ),
    mistake("dy is left out in dp", "dbell = dy * weights", "dbell = weights"),
    mistake(
        "dbell is divided by bell: the derivative of exp contains bell as a factor",
        "dbell * bell * away",
        "dbell / bell * away",
    ),
    mistake(
        "the absolute distance is used in dp: its sign says to which side p must move",
        "* away).",
        "* np.abs(away)).",
    ),
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
    mistake(
        "dv contains the derivative of tanh, 1 - hidden²: v comes after the tanh, so dv is the sum of "
        "dlogit · "
        "hidden",
        "dv = dlogit.reshape(-1) @ hidden.reshape(-1, hidden.shape[-1])",
        "dv = dlogit.reshape(-1) @ (hidden * (1 - hidden**2)).reshape(-1, hidden.shape[-1])",
    ),
    mistake(
        "dv is the sum of dlogit · (1 - hidden²): the derivative by v is hidden itself",
        "dv = dlogit.reshape(-1) @ hidden.reshape(-1, hidden.shape[-1])",
        "dv = dlogit.reshape(-1) @ (1 - hidden**2).reshape(-1, hidden.shape[-1])",
    ),
    mistake(
        "dv contains v: it is the sum of dlogit · hidden",
        "dv = dlogit.reshape(-1) @ hidden",
        "dv = v * (dlogit.reshape(-1) @ hidden",
        "hidden.shape[-1])\n    dtotal",
        "hidden.shape[-1]))\n    dtotal",
    ),
    mistake(
        "dv is computed from dp instead of dlogit: lengths and the derivative of the sigmoid are missing",
        "dv = dlogit.reshape(-1)",
        "dv = dp.reshape(-1)",
    ),
    mistake(
        "dtotal is computed from dp instead of dlogit: lengths and the derivative of the sigmoid are missing",
        "dtotal = dlogit[..., None]",
        "dtotal = dp[..., None]",
    ),
    mistake("the derivative of tanh is 1 - hidden², and not 1 - hidden", DTANH, " * (1 - hidden)"),
    mistake("the derivative of tanh is 1 - hidden², and not (1 - hidden)²", DTANH, " * (1 - hidden) ** 2"),
    mistake("dp is divided by lengths: p contains it as a factor", "dp * lengths", "dp / lengths"),
    mistake(
        "the derivative of the sigmoid is computed from p: it must be computed from share = p / lengths",
        DLOGIT,
        "dp * (lengths * share) * (1 - lengths * share)",
    ),
    mistake(
        "dv is that of the last state only: those of all states must be summed",
        "dlogit.reshape(-1) @ hidden.reshape(-1, hidden.shape[-1])",
        "dlogit.reshape(-1)[-1] * hidden.reshape(-1, hidden.shape[-1])[-1]",
    ),
    mistake(
        "dweight is that of the last state only: those of all states must be summed",
        "dtotal.reshape(-1, dtotal.shape[-1])",
        "(dtotal.reshape(-1, dtotal.shape[-1]) * (np.arange(dlogit.size) == dlogit.size - 1)[:, None])",
    ),
    mistake("tanh is applied to hidden once more", DTANH, " * (1 - np.tanh(hidden) ** 2)"),
    mistake(
        "the sigmoid is applied to share, which is a sigmoid already",
        "    dlogit =",
        "    share = 1 / (1 + np.exp(-share))\n    dlogit =",
    ),
    mistake(
        "dv and dweight are divided by the number of states: they must be sums, not averaged",
        "dv = dlogit.reshape(-1)",
        "dv = dlogit.reshape(-1) / dlogit.size",
        "dweight = ",
        "dweight = 1 / dlogit.size * ",
    ),
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
    mistake(
        "only the diagonal a (1 - a) of the softmax's Jacobian is used: the other entries of the row "
        "depend on "
        "the score too",
        "* a * (log_a + h[..., None])",
        "* (log_a + 1) * a * (1 - a)",
    ),
    mistake(
        "the backward pass of log-softmax is used instead of that of the softmax",
        "* a * (log_a + h[..., None])",
        "* (log_a + 1 - a * (log_a + 1).sum(-1, keepdims=True))",
    ),
    mistake(
        "1 is added to log a and h: it is cancelled by the backward pass of the softmax",
        "(log_a + h[..., None])",
        "(log_a + 1 + h[..., None])",
    ),
    mistake(
        "a - 1 takes the place of a: the gradient is not that of a cross-entropy",
        "dh[..., None] * a *",
        "dh[..., None] * (a - 1) *",
    ),
    mistake(
        "the gradient is divided by the number of keys: H is a sum over the keys",
        "return -dh[..., None]",
        "return -dh[..., None] / a.shape[-1]",
    ),
    mistake(
        "the gradient is divided by the number of queries: each query has its own entropy",
        "return -dh[..., None]",
        "return -dh[..., None] / dh.size",
    ),
    mistake(
        "the mean of log a is used in place of -h: the logarithms must be weighted with a",
        "+ h[..., None]",
        "- log_a.mean(-1, keepdims=True)",
    ),
    mistake(
        "the sum of log a is used in place of -h: the logarithms must be weighted with a",
        "+ h[..., None]",
        "- log_a.sum(-1, keepdims=True)",
    ),
    mistake("1 - a is used in place of a in front", "dh[..., None] * a *", "dh[..., None] * (1 - a) *"),
    mistake("h is multiplied by log a instead of added", "(log_a + h[..., None])", "(log_a * h[..., None])"),
    mistake(
        "a small number is added to a under the logarithm, which changes the gradient: treat weights of 0 "
        "separately",
        f"np.where(a > 0, {LOG}, 0)",
        "np.log(a + 1e-6)",
    ),
    mistake(
        "the entropies themselves are the gradient: h is used in place of dh",
        "-dh[..., None] * a",
        "-h[..., None] * a",
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
    mistake(
        "the mean of log_likelihood is subtracted: the baseline is the one that is given",
        "(log_likelihood - baseline)",
        "(log_likelihood - log_likelihood.mean())",
    ),
    mistake(
        "the mean over the samples is subtracted: the baseline is the one that is given",
        "(log_likelihood - baseline)",
        "(log_likelihood - log_likelihood.mean(0))",
    ),
    mistake(
        "the rewards are divided by their standard deviation",
        "dlog_prob = -reward",
        "reward = reward / reward.std(); dlog_prob = -reward",
    ),
    mistake(
        "negative rewards are set to 0: they make a choice less probable",
        "dlog_prob = -reward",
        "reward = np.maximum(reward, 0); dlog_prob = -reward",
    ),
    mistake(
        "dentropy is divided by the length of axis 0 (the samples): divide by the sentences",
        "-entropy_weight / B",
        "-entropy_weight / len(log_likelihood)",
    ),
    mistake(
        "dentropy contains reward_weight, which belongs to the reward only",
        "-entropy_weight / B",
        "-entropy_weight * reward_weight / B",
    ),
    mistake(
        "dlog_prob contains entropy_weight, which belongs to the entropy only",
        "-reward / log_likelihood.size",
        "-reward * entropy_weight / log_likelihood.size",
    ),
    mistake(
        "the baseline is divided out: it must be subtracted from log p(y | s)",
        "(log_likelihood - baseline)",
        "log_likelihood / np.where(baseline == 0, 1, baseline)",
    ),
    mistake(
        "both gradients have the wrong sign: the loss has a minus sign",
        "dlog_prob = -reward",
        "dlog_prob = reward",
        "-entropy_weight",
        "entropy_weight",
    ),
    mistake(
        "neither gradient is divided: the loss is a mean",
        "-reward / log_likelihood.size",
        "-reward",
        "-entropy_weight / B",
        "-entropy_weight",
    ),
    mistake(
        "the reward is the probability times log p: it is log p(y | s) minus the baseline",
        "(log_likelihood - baseline)",
        "(np.exp(log_likelihood) * log_likelihood - baseline)",
    ),
    mistake(
        "the reward is squared: the score function contains it once",
        "dlog_prob = -reward",
        "dlog_prob = -(reward**2)",
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
    mistake(
        "this is the backward pass of softmax: there is no exp here, so the factor y in front is wrong",
        OWN_SUM + " / length",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
    ),
    mistake(
        "w is used instead of y in the derivative of the Euclidean length: it is w_j / length, which is y_j",
        SLOPE,
        '1 if measure == "sum" else y * length',
    ),
    mistake(
        "only the diagonal of the Jacobian is used: the length depends on all entries of the row",
        "(dy * y).sum(-1, keepdims=True)",
        "dy * y",
    ),
    mistake(
        "the derivative of the square, 2 y, is used for the Euclidean length: the 2 is cancelled by the "
        "square root",
        SLOPE,
        '1 if measure == "sum" else 2 * y',
    ),
    mistake(
        "the 1/2 of the square root is not cancelled: the derivative of the Euclidean length is y_j",
        SLOPE,
        '1 if measure == "sum" else y / 2',
    ),
    mistake(
        "length multiplies y in the sum: y is w / length already, so w is used where y is needed",
        "(dy * y).sum(-1, keepdims=True)",
        "(dy * y * length).sum(-1, keepdims=True)",
    ),
    mistake(
        "the derivative of the length is y²: it must be 1 or y_j",
        SLOPE,
        "y**2",
    ),
    mistake(
        "y is left out: dy is only divided by the length, and its sum is subtracted",
        OWN_SUM,
        "(dy - dy.sum(-1, keepdims=True))",
    ),
    mistake(
        "only the term through the length is computed: the direct term dy is left out",
        "(dy - slope",
        "(0 * dy - slope",
    ),
    mistake("the square root of the length is used as the divisor", ") / length", ") / length**0.5"),
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
    mistake(
        "the softmax of active runs over the wrong axis in the backward pass: it runs over the last axis",
        "softmax_backward(dactive, active)",
        "softmax_backward(dactive.swapaxes(-1, -2), active.swapaxes(-1, -2)).swapaxes(-1, -2)",
    ),
    mistake(
        "dlatent is dw itself: the factor active is left out",
        "(active.swapaxes(-1, -2) @ dw[..., None])[..., 0]",
        "dw",
    ),
    mistake(
        "dactive is dw in every column: the factor latent is left out",
        "dw[..., :, None] * latent[..., None, :]",
        "dw[..., :, None] + 0 * active",
    ),
    mistake(
        "dactive is computed from weights instead of latent",
        "dw[..., :, None] * latent[..., None, :]",
        "dw[..., :, None] * weights[..., None, :]",
    ),
    mistake(
        "the arguments of softmax_backward are exchanged for the active weights",
        "softmax_backward(dactive, active)",
        "softmax_backward(active, dactive)",
    ),
    mistake(
        "softmax_backward is left out for both: the gradients of the scores are needed",
        "softmax_backward(dlatent, latent)",
        "dlatent",
        "softmax_backward(dactive, active)",
        "dactive",
    ),
    mistake(
        "softmax_backward is used instead of unit_weights_backward: the weights are divided by their length",
        "unit_weights_backward_(dweights, unit)",
        "softmax_backward(dweights, weights)",
    ),
    mistake(
        "unit_weights_backward is applied twice",
        "unit_weights_backward_(dweights, unit)",
        "unit_weights_backward_(unit_weights_backward_(dweights, unit), unit)",
    ),
    mistake(
        "only the diagonal of active gets a gradient: w_i contains all active_ij",
        "dw[..., :, None] * latent[..., None, :]",
        "dw[..., :, None] * latent[..., None, :] * np.eye(latent.shape[-1])",
    ),
    mistake(
        "dactive contains active: it is the product of dw and latent",
        "dw[..., :, None] * latent[..., None, :]",
        "dw[..., :, None] * latent[..., None, :] * active",
    ),
    mistake(
        "softmax_backward gets weights instead of latent: it needs the output of its own softmax",
        "softmax_backward(dlatent, latent)",
        "softmax_backward(dlatent, weights)",
    ),
    mistake(
        "dv is the mean of dy over the keys: each v_j gets weights_j dy",
        DV,
        "np.ones_like(v) * dy[..., None, :] / v.shape[-2]",
    ),
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
    mistake(
        "the sum runs over the queries too, so that all queries get the same total: it must run over the "
        "keys only",
        SUMS,
        "np.where(distance == r, y, 0).sum((-2, -1))[..., None]",
    ),
    mistake(
        "the first key of each distance is kept: several keys with the same distance must be added",
        SUMS,
        "np.where((distance == r) & (np.cumsum(distance == r, 1) == 1), y, 0).sum(-1)",
    ),
    mistake("the distances are counted from 1: entry 0 belongs to the distance 0", "== r", "== r + 1"),
    mistake("the sums are one place too late: entry r belongs to the distance r", "== r", "== r - 1"),
    mistake(
        "the distances of the first query are used for all queries", "distance == r", "distance[:1] == r"
    ),
    mistake(
        "the distances of the last query are used for all queries", "distance == r", "distance[-1:] == r"
    ),
    mistake("the keys are counted: y is left out", SUMS, "np.where(distance == r, 1, 0).sum(-1)"),
    mistake("the entries are multiplied by their distance", SUMS, f"r * {SUMS}"),
    mistake(
        "the absolute values are summed",
        "np.where(distance == r, y, 0)",
        "np.where(distance == r, np.abs(y), 0)",
    ),
    mistake(
        "the entries of a distance are multiplied instead of summed",
        SUMS,
        "np.where(distance == r, y, 1).prod(-1)",
    ),
    mistake("the comparison is < instead of ==: the sums contain all smaller distances", "== r", "< r"),
    mistake("the comparison is > instead of ==: the sums contain all larger distances", "== r", "> r"),
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
    mistake(
        "the gradient of the next step's weight is subtracted in dp: it must be that of the last step of "
        "the position",
        DP,
        "np.where(before, dweights - np.roll(dweights, -1, 0), 0)",
    ),
    mistake(
        "the gradient of the previous step's weight is subtracted in dp: it must be that of the last "
        "step of the "
        "position",
        DP,
        "np.where(before, dweights - np.roll(dweights, 1, 0), 0)",
    ),
    mistake(
        "the p of the last step gets a gradient: it is not used, so its gradient is 0",
        DP,
        "np.where(before, dweights - dlast, np.where(last, dweights, 0))",
    ),
    mistake(
        "the p of the last step gets a gradient, and dlast is left out in dp",
        DP,
        "np.where(before | last, dweights, 0)",
    ),
    mistake(
        "dp is multiplied by the weights, as for a softmax: w_n is p_n itself before the last step",
        "np.where(before, dweights - dlast, 0)",
        "np.where(before, weights * (dweights - dlast), 0)",
    ),
    mistake(
        "the backward pass of softmax is applied to the gradient of the weights",
        DP,
        "weights * (dweights - (weights * dweights).sum(0))",
    ),
    mistake(
        "dlast is multiplied by the weight of the last step: it is the gradient of this weight",
        "np.where(last, dweights, 0).sum(0)",
        "np.where(last, weights * dweights, 0).sum(0)",
    ),
    mistake(
        "the mean of the gradients of all weights is subtracted in dp: it must be that of the last step",
        "np.where(last, dweights, 0).sum(0)",
        "dweights.mean(0)",
    ),
    mistake(
        "dlast is summed over all positions: each position has its own last step",
        "np.where(last, dweights, 0).sum(0)",
        "np.where(last, dweights, 0).sum()",
    ),
    mistake(
        "only the state of the last step gets a gradient: all states are mixed",
        "weights[..., None] * dy",
        "(weights * last)[..., None] * dy",
    ),
    mistake(
        "dstates is divided by the number of steps: the weights contain the mean already",
        "dstates = weights[..., None] * dy",
        "dstates = weights[..., None] * dy / len(states)",
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
