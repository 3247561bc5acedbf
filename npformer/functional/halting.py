"""Adaptive computation time: after how many steps a position stops, and what it then says.

Each step ends in a state and in a probability to stop there. The number of steps is a whole number and has
no gradient; how the states are mixed has one.
"""

from typing import Any, NamedTuple

from npformer.backend import array_module


class MixCache(NamedTuple):
    """What mix_states_backward needs, and what the figures show."""

    states: Any  # (N, ..., D)
    weights: Any  # (N, ...) of each step: they sum to 1, or are 0 where no step was taken
    before: Any  # (N, ...) bool: a step, and not the last
    last: Any  # (N, ...) bool: the last step of a position

    @property
    def steps(self):
        """How many steps each position took, (...) integers."""
        return (self.before | self.last).sum(0)

    @property
    def remainder(self):
        """The weight of the last step, 1 - Σ p of those before, (...)."""
        return array_module(self.weights).where(self.last, self.weights, 0).sum(0)

    @property
    def ponder(self):
        """What thinking cost each position, steps + remainder, (...): Graves 2016, section 2.1."""
        return self.steps.astype(self.weights.real.dtype) + self.remainder


def mix_states(states, p, took):
    """y = Σ_n w_n s_n: the states of all steps that a position took, each by its probability to be the last.

        w_n = p_n before the last step N, and w_N = 1 - Σ_{n<N} p_n there: what is left, so that they sum to 1

    Shapes: states (N, ..., D), p (N, ...) from 0 to 1, took (N, ...) bool, True as long as the position went
    on -> y (..., D), 0 where no step was taken.
    Source: Graves 2016, section 2; Dehghani et al. 2019, section 2.2.
    """
    xp = array_module(states)
    goes_on = xp.concatenate([took[1:], xp.zeros_like(took[:1])])  # (N, ...) the step after was taken too
    before, last = took & goes_on, took & ~goes_on
    spent = xp.where(before, p, 0)  # (N, ...)
    weights = xp.where(last, 1 - spent.sum(0), spent)  # (N, ...)
    y = (weights[..., None] * states).sum(0)  # (..., D)
    return y, MixCache(states, weights, before, last)


def mix_states_backward(dy, cache, *, dponder=None):
    """Gradients (dstates, dp) of y = Σ_n w_n s_n. dponder (...) is the gradient of cache.ponder, if any."""
    states, weights, before, last = cache
    xp = array_module(dy)
    # y = Σ_n w_n s_n
    dstates = weights[..., None] * dy  # (N, ..., D)
    dweights = (states * dy).sum(-1)  # (N, ...)
    # ponder = steps + remainder: the steps are a whole number, the remainder is the last weight
    if dponder is not None:
        dweights = dweights + xp.where(last, dponder, 0)
    # w_N = 1 - Σ_{n<N} p_n: what any p gains, the last weight loses
    dremainder = xp.where(last, dweights, 0).sum(0)  # (...)
    # w_n = p_n
    return dstates, xp.where(before, dweights - dremainder, 0)
