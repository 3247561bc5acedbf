"""Loss functions: cross-entropy, Kullback-Leibler divergence and L2 distance, with their backward passes.

The cross-entropy is a mean over the tokens that are not padding.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32
from npformer.functional.softmax import (
    check_entries,
    log_softmax,
    log_softmax_backward,
    softmax,
    softmax_backward,
)


@cache_class
class CrossEntropyCache(NamedTuple):
    """The cache of cross_entropy."""

    log_probs: Array  # (N, V)
    targets: Array  # (N,)
    real: Array  # (N,) 1 at a token, 0 at padding
    smoothing: float
    shape: tuple[int, ...]  # the shape of the logits
    tokens: int  # the number by which the sum was divided


@sums_in_float32
def cross_entropy(
    logits: Array,
    targets: Array,
    *,
    smoothing: float = 0.0,
    pad_id: int | None = None,
    tokens: int | None = None,
) -> tuple[Array, CrossEntropyCache]:
    """Compute the mean of -Σ_v q_v log p_v over all tokens that are not padding, where p = softmax(logits).

    The target distribution q is smoothing / V at every token, plus 1 - smoothing at the target. It is never
    stored, since -Σ_v q_v log p_v = -(1 - smoothing) log p_target - smoothing mean_v log p_v.

    Args:
        logits: The scores of all tokens of the vocabulary, of shape (..., V).
        targets: The right token ids, of shape (...).
        smoothing: The amount of label smoothing, ε_ls in Vaswani et al. 2017, from 0 to 1.
        pad_id: The id of padding, which does not count. It may lie outside the vocabulary.
        tokens: The number by which the sum of the losses is divided. The default is the number of targets
            that are not padding. If a training step is split into several calls, give the number for the
            whole step.

    Returns:
        The loss, of shape (), and the cache.

    Raises:
        UserError: If the shapes do not fit, or a target that counts is outside [0, V).

    Source: Szegedy et al. 2016, section 7 (label smoothing); Vaswani et al. 2017, section 5.4.
    """
    xp = array_module(logits)
    check_entries(logits)
    check_target_shape(logits, targets)
    rows = logits.reshape(-1, logits.shape[-1])  # (N, V)
    targets = targets.reshape(-1)  # (N,)
    log_probs, _ = log_softmax(rows)  # (N, V)
    is_token = targets != pad_id if pad_id is not None else xp.ones(targets.shape, bool)
    check_targets(targets, is_token, rows.shape[-1])
    targets = xp.where(is_token, targets, 0)  # pad_id may lie outside the vocabulary, such as -100
    real = is_token.astype(rows.real.dtype)
    tokens = max(1, int(real.sum())) if tokens is None else tokens
    at_target = log_probs[xp.arange(len(targets)), targets]  # (N,) one entry of each row
    losses = -(1 - smoothing) * at_target  # (N,)
    if smoothing:  # 0 log 0 is 0: without smoothing, a token whose logit is -inf has no part in the loss
        losses = losses - smoothing * log_probs.mean(-1)
    cache = CrossEntropyCache(log_probs, targets, real, smoothing, logits.shape, tokens)
    return xp.where(is_token, losses, 0).sum() / tokens, cache


@sums_in_float32
def cross_entropy_backward(dloss: float | Array, cache: CrossEntropyCache) -> Array:
    """Return dlogits, of shape (..., V): dloss (p - q) / tokens at tokens, and 0 at padding."""
    log_probs, targets, real, smoothing, shape, tokens = cache
    xp = array_module(log_probs)
    # loss = (sum over the tokens of -sum_v q_v log p_v) / tokens; d log p_v / dlogit_j = [v = j] - p_j
    drows = xp.exp(log_probs) - smoothing / shape[-1]  # (N, V)
    drows[xp.arange(len(targets)), targets] -= 1 - smoothing
    drows = drows * (real[:, None] * (dloss / tokens))
    return drows.reshape(shape)


def check_target_shape(logits: Array, targets: Array, *last: int) -> None:
    """Raise UserError unless each row of the logits has a target.

    Shapes: logits (..., V), targets (..., *last).
    """
    if targets.shape != (*logits.shape[:-1], *last):
        raise UserError(
            f"the targets have shape {targets.shape} and the logits {logits.shape}: give one target for each "
            "row of the logits"
        )


def check_targets(targets: Array, is_token: Array, vocab_size: int) -> None:
    """Check that the targets are in [0, vocab_size), since NumPy reads -1 as the index of the last token.

    Args:
        targets: Integers, of shape (N,).
        is_token: Bool, of shape (N,). False marks padding, which is not checked.
        vocab_size: The number of tokens.

    Raises:
        UserError: If a target is outside [0, vocab_size). The message names the first one.
    """
    wrong = is_token & ((targets < 0) | (targets >= vocab_size))
    if bool(wrong.any()):
        first = int(array_module(targets).argmax(wrong))
        raise UserError(
            f"target {first} (counted row by row) is {int(targets[first])}, outside the {vocab_size} tokens "
            f"of the logits: use ids from 0 to {vocab_size - 1}"
        )


def smooth_targets(targets: Array, n_classes: int, smoothing: float) -> Array:
    """Return the target distribution q = (1 - smoothing) one-hot + smoothing / n_classes.

    Args:
        targets: Integers, of shape (...).
        n_classes: The number of classes V.
        smoothing: The amount of label smoothing, ε_ls in Vaswani et al. 2017, from 0 to 1.

    Returns:
        q, of shape (..., V), float64.

    Source: Szegedy et al. 2016, section 7.
    """
    xp = array_module(targets)
    one_hot = targets[..., None] == xp.arange(n_classes)
    return (1 - smoothing) * one_hot.astype(xp.float64) + smoothing / n_classes


@cache_class
class DivergenceCache(NamedTuple):
    """The cache of kl_divergence."""

    log_p: Array  # (..., V)
    q: Array  # (..., V)


@sums_in_float32
def kl_divergence(logits: Array, q: Array) -> tuple[Array, DivergenceCache]:
    """Compute the mean over rows of Σ_v q_v (log q_v - log p_v), where p = softmax(logits).

    It is the cross-entropy minus the entropy of q. The entropy of q does not depend on the logits, so the
    gradient of the logits is that of the cross-entropy.

    Shapes: logits (..., V), q (..., V) with rows that sum to 1 -> loss ().

    Raises:
        UserError: If the shapes differ.

    Source: Kullback and Leibler 1951.
    """
    xp = array_module(logits)
    check_target_shape(logits, q, logits.shape[-1])
    log_p, _ = log_softmax(logits)  # (..., V)
    # 0 log 0 = 0: where q is 0, the term is 0, also if p is 0
    log_q = xp.log(xp.where(q.real > 0, q, 1))  # (..., V)
    rows = (q * (log_q - xp.where(q.real > 0, log_p, 0))).sum(-1)  # (...)
    return rows.mean(), DivergenceCache(log_p, q)


@sums_in_float32
def kl_divergence_backward(dloss: float | Array, cache: DivergenceCache) -> Array:
    """Return dlogits, of shape (..., V). There is no gradient of q, which is not learned."""
    log_p, q = cache
    # loss = mean over rows of sum_v q_v (log q_v - log p_v)
    dlog_p = -q * (dloss / (q.size // q.shape[-1]))  # (..., V)
    return log_softmax_backward(dlog_p, log_p)


@cache_class
class DistanceCache(NamedTuple):
    """The cache of l2_distance."""

    p: Array  # (..., V)
    difference: Array  # (..., V)
    distance: Array  # (..., 1)


@sums_in_float32
def l2_distance(logits: Array, q: Array) -> tuple[Array, DistanceCache]:
    """Compute the mean over rows of sqrt(Σ_v (p_v - q_v)²), where p = softmax(logits).

    "The illustrated Transformer" uses it as a first idea of a loss.

    Shapes: logits (..., V), q (..., V) -> loss ().

    Raises:
        UserError: If the shapes differ.
    """
    xp = array_module(logits)
    check_target_shape(logits, q, logits.shape[-1])
    p, _ = softmax(logits)  # (..., V)
    difference = p - q  # (..., V)
    distance = xp.sqrt((difference * difference).sum(-1, keepdims=True))  # (..., 1)
    return distance.mean(), DistanceCache(p, difference, distance)


@sums_in_float32
def l2_distance_backward(dloss: float | Array, cache: DistanceCache) -> Array:
    """Return dlogits, of shape (..., V). If p = q, the distance has no derivative, and 0 is returned."""
    p, difference, distance = cache
    xp = array_module(p)
    # loss = mean of sqrt(sum_v difference_v^2)
    length = xp.where(distance.real == 0, 1, distance)  # (..., 1)
    dp = difference / length * (dloss / distance.size)  # (..., V)
    # p = softmax(logits)
    return softmax_backward(dp, p)
