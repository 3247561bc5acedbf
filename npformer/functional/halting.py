"""Adaptive computation time: a weighted mean of the states of a number of steps that differs by position.

Each step of a position computes a state and a probability to stop. The number of steps is an integer, so it
has no gradient. The weights of the mean have a gradient.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class


@cache_class
class MixCache(NamedTuple):
    """The cache of mix_states. The figures draw its weights and numbers of steps."""

    states: Array  # (N, ..., D)
    weights: Array  # (N, ...) the weight of each step: they sum to 1, or are 0 for positions without a step
    before: Array  # (N, ...) bool: a step of a position before its last one
    last: Array  # (N, ...) bool: the last step of a position

    @property
    def steps(self) -> Array:
        """The number of steps of each position, (...) integers."""
        return (self.before | self.last).sum(0)

    @property
    def remainder(self) -> Array:
        """The weight of the last step, 1 - Σ p of the steps before it, (...)."""
        return array_module(self.weights).where(self.last, self.weights, 0).sum(0)

    @property
    def ponder(self) -> Array:
        """The ponder cost of each position, steps + remainder, (...): Graves 2016, section 2.1."""
        return self.steps.astype(self.weights.real.dtype) + self.remainder


def mix_states(states: Array, p: Array, took: Array) -> tuple[Array, MixCache]:
    """Compute y = Σ_n w_n s_n, the mean of the states of all steps, weighted by the probability to stop.

        w_n = p_n before the last step N, and w_N = 1 - Σ_{n<N} p_n, so that the weights sum to 1

    Args:
        states: The state after each step, of shape (N, ..., D).
        p: The probability to stop at each step, from 0 to 1, of shape (N, ...).
        took: Bool, of shape (N, ...). True where the position took the step.

    Returns:
        y, of shape (..., D), which is 0 for positions without a step, and the cache.

    Source: Graves 2016, section 2; Dehghani et al. 2019, section 2.2.
    """
    xp = array_module(states)
    goes_on = xp.concatenate([took[1:], xp.zeros_like(took[:1])])  # (N, ...) the step after was taken too
    before, last = took & goes_on, took & ~goes_on
    spent = xp.where(before, p, 0)  # (N, ...)
    weights = xp.where(last, 1 - spent.sum(0), spent)  # (N, ...)
    y = (weights[..., None] * states).sum(0)  # (..., D)
    return y, MixCache(states, weights, before, last)


def mix_states_backward(dy: Array, cache: MixCache, *, dponder: Array | None = None) -> tuple[Array, Array]:
    """Return the gradients (dstates, dp) of y = Σ_n w_n s_n.

    Args:
        dy: The gradient of y, of shape (..., D).
        cache: The cache of mix_states.
        dponder: The gradient of cache.ponder, of shape (...), if the loss depends on it.
    """
    states, weights, before, last = cache
    xp = array_module(dy)
    # y = Σ_n w_n s_n
    dstates = weights[..., None] * dy  # (N, ..., D)
    dweights = (states * dy).sum(-1)  # (N, ...)
    # ponder = steps + remainder: the number of steps has no gradient, the remainder is the last weight
    if dponder is not None:
        dweights = dweights + xp.where(last, dponder, 0)
    # w_N = 1 - Σ_{n<N} p_n: the last weight decreases by as much as any p_n increases
    dremainder = xp.where(last, dweights, 0).sum(0)  # (...)
    # w_n = p_n
    return dstates, xp.where(before, dweights - dremainder, 0)
