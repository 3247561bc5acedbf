"""Losses of answers: DPO, which learns from pairs of answers, and GRPO, which learns from rewards.

Both begin with log-probabilities of drawn tokens, which log_probability computes, and both compare the model
with a reference: the model before this training, which stays as it is.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.activations import sigmoid
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


@cache_class
class DPOCache(NamedTuple):
    """The cache of dpo."""

    margin: Array  # (B,) β times how much more the model prefers the chosen answer than the reference does
    beta: float


@sums_in_float32
def dpo(
    chosen: Array, rejected: Array, reference_margin: Array, *, beta: float = 0.1
) -> tuple[Array, DPOCache]:
    """Compute the loss of direct preference optimization, the mean of -log sigmoid(margin).

    The margin of a pair is β ((log p(chosen) - log p(rejected)) - reference margin).

    Args:
        chosen: log p of the better answer of each pair, of shape (B,): the sum over its tokens.
        rejected: log p of the worse answer, of shape (B,).
        reference_margin: log p(chosen) - log p(rejected) of the reference, of shape (B,), without gradient.
        beta: β. A larger one keeps the model nearer to the reference.

    Returns:
        The loss, of shape (), and the cache.

    Source: Rafailov et al. 2023, equation 7.
    """
    xp = array_module(chosen)
    margin = beta * (chosen - rejected - reference_margin)  # (B,)
    # -log sigmoid(m) = log(1 + exp(-m)) = max(-m, 0) + log(1 + exp(-|m|)), where exp cannot overflow
    sign = xp.where(margin.real > 0, 1, -1).astype(margin.dtype)
    loss = xp.where(margin.real > 0, 0, -margin) + xp.log1p(xp.exp(-sign * margin))
    return loss.mean(), DPOCache(margin, beta)


@sums_in_float32
def dpo_backward(dloss: float | Array, cache: DPOCache) -> tuple[Array, Array]:
    """Return the gradients dchosen and drejected (B,): a pair with a negative margin weighs most."""
    margin, beta = cache
    # loss = mean of -log sigmoid(margin), whose derivative is -(1 - sigmoid(margin)) = -sigmoid(-margin)
    dmargin = -sigmoid(-margin)[0] * (dloss / len(margin))  # (B,)
    # margin = β (chosen - rejected - reference_margin)
    return beta * dmargin, -beta * dmargin


@cache_class
class GRPOCache(NamedTuple):
    """The cache of grpo."""

    ratio: Array  # (N, T) the probability of each token, divided by that when it was drawn
    reference_ratio: Array  # (N, T) the probability under the reference, divided by that of the model
    weight: Array  # (N, T) the advantage where the ratio counts, and 0 where it is clipped or is padding
    mask: Array  # (N, T) bool: True at the tokens of an answer
    beta: float


@sums_in_float32
def grpo(
    log_probs: Array,
    old: Array,
    reference: Array,
    advantages: Array,
    mask: Array,
    *,
    clip: float = 0.2,
    beta: float = 0.04,
) -> tuple[Array, GRPOCache]:
    """Compute the loss of group relative policy optimization, a mean over the tokens of all answers.

        loss = mean of -min(ratio A, clip(ratio, 1 - ε, 1 + ε) A) + β (r - log r - 1)

    ratio = p / p_old, A is the advantage of the answer, and r = p_reference / p. The term with β is an
    estimate of the KL divergence from the reference, which is never negative.

    Args:
        log_probs: log p of each token of N answers under the model, of shape (N, T).
        old: log p when the answers were drawn, of shape (N, T). At the first update they are equal.
        reference: log p under the reference, of shape (N, T).
        advantages: The advantage of each answer, of shape (N,), such as group_advantages returns.
        mask: Bool, of shape (N, T). True at the tokens of the answers, False at prompts and padding.
        clip: ε. A token whose probability has already moved further in the right direction has no gradient.
        beta: β, the weight of the divergence.

    Returns:
        The loss, of shape (), and the cache. Only log_probs gets a gradient.

    Source: Shao et al. 2024, equation 3, with the mean over all tokens as in Yu et al. 2025; Schulman et al.
        2017, equation 7 (the clipped ratio).
    """
    xp = array_module(log_probs)
    log_probs, old, reference = (xp.where(mask, each, 0) for each in (log_probs, old, reference))
    ratio = xp.exp(log_probs - old)  # (N, T)
    reference_ratio = xp.exp(reference - log_probs)  # (N, T)
    gain = advantages[:, None]  # (N, 1)
    # the minimum is the clipped term if a positive advantage meets a ratio above 1 + ε, or a negative one
    # a ratio below 1 - ε
    limit = xp.where(gain.real > 0, 1 + clip, 1 - clip)  # (N, 1)
    is_clipped = gain.real * (ratio.real - limit) > 0  # (N, T)
    objective = xp.where(is_clipped, limit.astype(ratio.dtype), ratio) * gain
    divergence = reference_ratio - (reference - log_probs) - 1
    losses = xp.where(mask, beta * divergence - objective, 0)  # (N, T)
    weight = xp.where(mask & ~is_clipped, gain, 0)
    return losses.sum() / max(1, int(mask.sum())), GRPOCache(ratio, reference_ratio, weight, mask, beta)


@sums_in_float32
def grpo_backward(dloss: float | Array, cache: GRPOCache) -> Array:
    """Return dlog_probs, of shape (N, T)."""
    ratio, reference_ratio, weight, mask, beta = cache
    # loss = mean of β (r - log r - 1) - ratio A, with d ratio = ratio dlog p and dr = -r dlog p
    dlog_probs = beta * (1 - reference_ratio) - weight * ratio  # (N, T)
    # outside the mask it is 0 already: the weight is 0, and both ratios are 1
    return dlog_probs * (dloss / max(1, int(mask.sum())))


@sums_in_float32
def group_advantages(rewards: Array, *, normalize: bool = True) -> Array:
    """Return the advantage of each answer over the other answers to the same question.

    The advantage is (reward - mean) / standard deviation, of the group. The mean is the baseline of lesson
    19.3. If all answers of a group are equally good, their advantages are 0.

    Args:
        rewards: The rewards of G answers to each of P questions, of shape (P, G).
        normalize: Divide by the standard deviation.

    Returns:
        The advantages, of shape (P, G).

    Source: Shao et al. 2024, section 4.1.2; Liu et al. 2025 (without the division).
    """
    xp = array_module(rewards)
    centred = rewards - rewards.mean(-1, keepdims=True)
    if not normalize:
        return centred
    deviation = rewards.std(-1, keepdims=True)
    return centred / xp.where(deviation > 0, deviation, 1)
