"""Adaptive computation time: the output of a position is a weighted mean of its states after all its steps.

Each step of a position computes a state and a probability of stopping after this step. The number of steps
can differ between positions. It is an integer, so it has no gradient. The weights of the mean have a
gradient.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


@cache_class
class MixCache(NamedTuple):
    """The cache of mix_states. The figures show its weights and numbers of steps."""

    states: Array  # (N, ..., D)
    weights: Array  # (N, ...) the weights of the steps: they sum to 1, or are 0 for positions without a step
    before: Array  # (N, ...) bool: True at the steps that a position took before its last step
    last: Array  # (N, ...) bool: True at the last step that a position took

    @property
    def steps(self) -> Array:
        """The number of steps of each position, (...) integers."""
        return (self.before | self.last).sum(0)

    @property
    def remainder(self) -> Array:
        """The weight of the last step, which is 1 minus the sum of p over the steps before it, (...)."""
        return array_module(self.weights).where(self.last, self.weights, 0).sum(0)

    @property
    def ponder(self) -> Array:
        """The ponder cost of each position, steps + remainder, (...). Source: Graves 2016, section 2.1."""
        return self.steps.astype(self.weights.real.dtype) + self.remainder


@sums_in_float32
def mix_states(states: Array, p: Array, taken: Array) -> tuple[Array, MixCache]:
    """Compute y = Σ_n w_n s_n, the mean of the states s_n, weighted by the probabilities p_n of stopping.

        w_n = p_n for the steps before the last step M of the position
        w_M = 1 - Σ_{n<M} p_n, so that the weights sum to 1

    Args:
        states: The state after each step, of shape (N, ..., D).
        p: The probability of stopping after each step, from 0 to 1, of shape (N, ...).
        taken: Bool, of shape (N, ...). True where the position took the step.

    Returns:
        y, of shape (..., D), which is 0 for positions without a step, and the cache.

    Source: Graves 2016, section 2; Dehghani et al. 2019, section 2.2.
    """
    xp = array_module(states)
    next_taken = xp.concatenate([taken[1:], xp.zeros_like(taken[:1])])  # (N, ...)
    before, last = taken & next_taken, taken & ~next_taken
    p_before = xp.where(before, p, 0)  # (N, ...)
    weights = xp.where(last, 1 - p_before.sum(0), p_before)  # (N, ...)
    y = (weights[..., None] * states).sum(0)  # (..., D)
    return y, MixCache(states, weights, before, last)


@sums_in_float32
def mix_states_backward(dy: Array, cache: MixCache, *, dponder: Array | None = None) -> tuple[Array, Array]:
    """Compute the gradients of y = Σ_n w_n s_n.

    Args:
        dy: The gradient of y, of shape (..., D).
        cache: The cache of mix_states.
        dponder: The gradient of cache.ponder, of shape (...), if the loss depends on it.

    Returns:
        dstates, of shape (N, ..., D), and dp, of shape (N, ...).
    """
    states, weights, before, last = cache
    xp = array_module(dy)
    # y = Σ_n w_n s_n
    dstates = weights[..., None] * dy  # (N, ..., D)
    dweights = (states * dy).sum(-1)  # (N, ...)
    # ponder = steps + remainder. The number of steps has no gradient, and the remainder is the last weight
    if dponder is not None:
        dweights = dweights + xp.where(last, dponder, 0)
    # w_M = 1 - Σ_{n<M} p_n: the derivative of the last weight with respect to each p_n before it is -1
    dremainder = xp.where(last, dweights, 0).sum(0)  # (...)
    # w_n = p_n before the last step
    return dstates, xp.where(before, dweights - dremainder, 0)
