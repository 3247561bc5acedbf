"""How far a prediction is from its target: four losses, each with its backward pass.

The losses of words average over the real tokens: padding counts neither in the sum nor in the number.
"""

from typing import Any, NamedTuple

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.functional.softmax import log_softmax, log_softmax_backward, softmax, softmax_backward


class CrossEntropyCache(NamedTuple):
    """What cross_entropy_backward needs."""

    log_probs: Any  # (N, V)
    targets: Any  # (N,)
    real: Any  # (N,) 1 at a token, 0 at padding
    smoothing: float
    shape: tuple  # of the logits
    tokens: int  # what the sum was divided by


def cross_entropy(logits, targets, *, smoothing=0.0, pad_id=None, tokens=None):
    """loss = mean over real tokens of -sum_v q_v log p_v, with p = softmax(logits).

    The target distribution q is (1 - smoothing) at the target plus smoothing / V everywhere, and is
    never formed: -sum_v q_v log p_v = -(1 - smoothing) log p_target - smoothing mean_v log p_v.
    Shapes: logits (..., V), targets (...) integers -> loss (). Positions with pad_id do not count.
    tokens: what to divide the sum by instead, where these are only some of the tokens of a step.
    Errors: UserError for a target that counts and lies outside [0, V).
    Source: Szegedy et al. 2016, section 7 (label smoothing); Vaswani et al. 2017, section 5.4.
    """
    xp = array_module(logits)
    rows = logits.reshape(-1, logits.shape[-1])  # (N, V)
    targets = targets.reshape(-1)  # (N,)
    log_probs, _ = log_softmax(rows)  # (N, V)
    is_real = targets != pad_id if pad_id is not None else xp.ones(targets.shape, bool)
    check_targets(targets, is_real, rows.shape[-1])
    targets = xp.where(is_real, targets, 0)  # a pad_id may lie outside the vocabulary, as -100 does
    real = is_real.astype(rows.real.dtype)
    tokens = max(1, int(real.sum())) if tokens is None else tokens
    at_target = log_probs[xp.arange(len(targets)), targets]  # (N,) found by index, one a row
    losses = -(1 - smoothing) * at_target - smoothing * log_probs.mean(-1)  # (N,)
    cache = CrossEntropyCache(log_probs, targets, real, smoothing, logits.shape, tokens)
    return (losses * real).sum() / tokens, cache


def cross_entropy_backward(dloss, cache):
    """dlogits = dloss (p - q) / tokens at the real tokens, 0 at padding."""
    log_probs, targets, real, smoothing, shape, tokens = cache
    xp = array_module(log_probs)
    # loss = sum over real tokens of -sum_v q_v log p_v, over their number; its gradient is p - q
    drows = xp.exp(log_probs) - smoothing / shape[-1]  # (N, V)
    drows[xp.arange(len(targets)), targets] -= 1 - smoothing
    drows = drows * (real[:, None] * (dloss / tokens))
    return drows.reshape(shape)


def check_targets(targets, is_real, n_words):
    """Refuse targets outside [0, n_words): as an index, -1 would mean the last word."""
    wrong = is_real & ((targets < 0) | (targets >= n_words))
    if bool(wrong.any()):
        first = int(array_module(targets).argmax(wrong))
        raise UserError(
            f"target {first} (counted row by row) is {int(targets[first])}, outside the {n_words} words of "
            f"the logits: use ids from 0 to {n_words - 1}"
        )


def smooth_targets(targets, n_classes, smoothing):
    """The target distribution q written out: (1 - smoothing) one-hot + smoothing / n_classes.

    Shapes: targets (...) integers -> q (..., V), float64.
    """
    xp = array_module(targets)
    one_hot = targets[..., None] == xp.arange(n_classes)
    return (1 - smoothing) * one_hot.astype(xp.float64) + smoothing / n_classes


class DivergenceCache(NamedTuple):
    """What kl_divergence_backward needs."""

    log_p: Any  # (..., V)
    q: Any  # (..., V)


def kl_divergence(logits, q):
    """loss = mean over rows of sum_v q_v (log q_v - log p_v), with p = softmax(logits).

    It is the cross-entropy less the entropy of q, so both have one gradient.
    Shapes: logits (..., V), q (..., V) rows that sum to 1 -> loss ().
    Source: Kullback and Leibler 1951.
    """
    xp = array_module(logits)
    log_p, _ = log_softmax(logits)  # (..., V)
    positive = xp.where(q.real > 0, q, 1)  # 0 log 0 counts as 0
    rows = (q * (xp.log(positive) - log_p)).sum(-1)  # (...)
    return rows.mean(), DivergenceCache(log_p, q)


def kl_divergence_backward(dloss, cache):
    """dlogits; q is given, not learned, and gets no gradient."""
    log_p, q = cache
    # loss = mean over rows of sum_v q_v (log q_v - log p_v)
    dlog_p = -q * (dloss / (q.size // q.shape[-1]))  # (..., V)
    return log_softmax_backward(dlog_p, log_p)


class DistanceCache(NamedTuple):
    """What l2_distance_backward needs."""

    p: Any  # (..., V)
    difference: Any  # (..., V)
    distance: Any  # (..., 1)


def l2_distance(logits, q):
    """loss = mean over rows of sqrt(sum_v (p_v - q_v)^2), with p = softmax(logits).

    The illustrated documents' first idea of a loss: the distance of two points.
    Shapes: logits (..., V), q (..., V) -> loss ().
    """
    xp = array_module(logits)
    p, _ = softmax(logits)  # (..., V)
    difference = p - q  # (..., V)
    distance = xp.sqrt((difference * difference).sum(-1, keepdims=True))  # (..., 1)
    return distance.mean(), DistanceCache(p, difference, distance)


def l2_distance_backward(dloss, cache):
    """dlogits; where the two points coincide the distance has a kink, and the gradient is taken as 0."""
    p, difference, distance = cache
    xp = array_module(p)
    # loss = mean of sqrt(sum_v difference_v^2)
    length = xp.where(distance.real == 0, 1, distance)  # (..., 1)
    dp = difference / length * (dloss / distance.size)  # (..., V)
    # p = softmax(logits)
    return softmax_backward(dp, p)
