"""Mixture of experts: a router chooses a few of many feed-forward networks for each token.

    weights, chosen = route(router's logits)
    y_n = Σ_j weights_nj expert_{chosen_nj}(x_n),  where j runs over the k chosen experts of token n

A token passes through k experts only, so the model has many parameters and few operations per token. The
choice is a jump, which has no gradient. The router learns through the weights: if an expert lowers the loss
of its tokens, their weights for it grow.

A router that prefers an expert trains this expert more, and so prefers it even more, until the others are
never chosen. `load_balancing` is a term of the loss against this collapse.

Source: Shazeer et al. 2017, section 2; Fedus et al. 2022, section 2.2; Jiang et al. 2024, section 2.1.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32
from npformer.functional.softmax import softmax, softmax_backward


@cache_class
class RouteCache(NamedTuple):
    """The cache of route."""

    probs: Array  # (N, E) of all experts
    chosen: Array  # (N, k) integers, the experts of each token, the most probable one first
    weights: Array  # (N, k)
    total: Array | None  # (N, 1) the sum of the chosen probabilities, or None if it is not divided by


@sums_in_float32
def route(logits: Array, k: int, *, renormalize: bool = True) -> tuple[Array, RouteCache]:
    """Choose the k most probable experts of each token, and weigh them.

    The probabilities are p = softmax(logits). The weights are the chosen p, or p / Σ p with the sum over the
    chosen experts, so that they sum to 1. With k = 1 such a weight is always 1, and the router gets no
    gradient: do not renormalize then.

    Args:
        logits: The scores of all experts, of shape (N, E).
        k: The number of experts for each token, from 1 to E.
        renormalize: Divide the weights by their sum.

    Returns:
        The weights, of shape (N, k), and the cache, which says which experts are chosen.

    Source: Jiang et al. 2024, section 2.1 (renormalized); Fedus et al. 2022, section 2.1 (k = 1).
    """
    xp = array_module(logits)
    probs, _ = softmax(logits)  # (N, E)
    chosen = xp.argsort(-probs.real, axis=-1, kind="stable")[:, :k]  # (N, k)
    weights, total = xp.take_along_axis(probs, chosen, -1), None  # (N, k)
    if renormalize:
        total = weights.sum(-1, keepdims=True)  # (N, 1)
        weights = weights / total
    return weights, RouteCache(probs, chosen, weights, total)


@sums_in_float32
def route_backward(dweights: Array, cache: RouteCache) -> Array:
    """Return dlogits, of shape (N, E). Shapes: dweights (N, k)."""
    probs, chosen, weights, total = cache
    xp = array_module(dweights)
    if total is not None:
        # weights_j = p_j / Σ_i p_i over the chosen experts: the quotient rule
        dweights = (dweights - (dweights * weights).sum(-1, keepdims=True)) / total  # (N, k)
    # weights = probs[chosen]: the other probabilities have no direct part in the output
    dprobs = xp.zeros(probs.shape, dweights.dtype)  # (N, E)
    dprobs[xp.arange(len(chosen))[:, None], chosen] = dweights
    # probs = softmax(logits), through which every logit has one
    return softmax_backward(dprobs, probs)


@cache_class
class CombineCache(NamedTuple):
    """The cache of combine."""

    weights: Array  # (N, k)
    outputs: Array  # (N, k, D)


@sums_in_float32
def combine(weights: Array, outputs: Array) -> tuple[Array, CombineCache]:
    """Compute y_n = Σ_j weights_nj outputs_nj, the weighted sum of what the chosen experts put out.

    Shapes: weights (N, k), outputs (N, k, D) -> y (N, D).

    Source: Shazeer et al. 2017, equation 1.
    """
    return (weights[..., None] * outputs).sum(1), CombineCache(weights, outputs)


@sums_in_float32
def combine_backward(dy: Array, cache: CombineCache) -> tuple[Array, Array]:
    """Return the gradients dweights (N, k) and doutputs (N, k, D) of a weighted sum. Shapes: dy (N, D)."""
    weights, outputs = cache
    # y_n = Σ_j weights_nj outputs_nj: a weight gets the dot product of dy with what it multiplies
    dweights = (dy[:, None] * outputs).sum(-1)  # (N, k)
    doutputs = weights[..., None] * dy[:, None]  # (N, k, D)
    return dweights, doutputs


@cache_class
class BalanceCache(NamedTuple):
    """The cache of load_balancing."""

    probs: Array  # (N, E)
    share: Array  # (E,) the number of choices of each expert, divided by the number of tokens


@sums_in_float32
def load_balancing(logits: Array, chosen: Array) -> tuple[Array, BalanceCache]:
    """Compute the load-balancing loss E Σ_e f_e P_e, which is small if all experts are chosen equally often.

    f_e is the number of tokens that have chosen expert e, divided by N, and P_e is the mean probability of e
    over all tokens. If both are equal for all experts, f_e = k / E and P_e = 1 / E, and the loss is k. If all
    tokens choose the same k experts with certainty, it is E. f is a count, which has no gradient: the loss
    lowers the probabilities of the experts that are chosen too often.

    Args:
        logits: The scores of all experts, of shape (N, E).
        chosen: The chosen experts of each token, integers of shape (N, k).

    Returns:
        The loss, of shape (), and the cache.

    Source: Fedus et al. 2022, equations 4 to 6, there with k = 1.
    """
    xp = array_module(logits)
    n_tokens, n_experts = logits.shape
    probs, _ = softmax(logits)  # (N, E)
    counts = (chosen[..., None] == xp.arange(n_experts)).sum((0, 1))  # (E,)
    share = counts.astype(probs.real.dtype) / n_tokens
    return n_experts * (share * probs.mean(0)).sum(), BalanceCache(probs, share)


@sums_in_float32
def load_balancing_backward(dloss: float | Array, cache: BalanceCache) -> Array:
    """Return dlogits, of shape (N, E). The choice has no gradient."""
    probs, share = cache
    n_tokens, n_experts = probs.shape
    # loss = E Σ_e f_e P_e, P_e = (1 / N) Σ_n probs_ne
    dprobs = (dloss * n_experts / n_tokens) * share  # (E,) the same for all tokens
    # probs = softmax(logits)
    return softmax_backward(dprobs, probs)
