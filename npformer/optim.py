"""Adam, learning-rate schedules and gradient clipping, over a model's flat buffers."""

import math
from collections.abc import Callable
from typing import Any

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.kernels import adam_update


def whole(function, size):
    """Call the function with one slice, all of range(size)."""
    function(slice(0, size))


class Adam:
    """Adam as in the paper: one loop over all parameters, since they lie in one buffer.

    m = β1 m + (1 - β1) g,  v = β2 v + (1 - β2) g²,
    value -= lr · (m / (1 - β1^t)) / (sqrt(v / (1 - β2^t)) + eps), with t counted once a step.
    Source: Kingma and Ba 2015; Vaswani et al. 2017, section 5.3 (β1 = .9, β2 = .98, eps = 1e-9).
    """

    def __init__(self, model, *, betas=(0.9, 0.98), eps=1e-9):
        if model.values is None:
            model.flatten()
        self.model, self.betas, self.eps = model, betas, eps
        xp = array_module(model.values)
        self.m = xp.zeros_like(model.values)  # (P,) the gradients' moving mean
        self.v = xp.zeros_like(model.values)  # (P,) and that of their squares
        self.t = 0

    def step(self, lr, over=whole):
        """Move the values by the gradients that the backward passes left; the gradients stay.

        over(update, size) calls update with slices that make up range(size): threads may share them.
        """
        self.t += 1
        model = self.model

        def update(part):
            arrays = (array[part] for array in (model.values, model.grads, self.m, self.v))
            adam_update(*arrays, lr, self.t, self.betas, self.eps)

        over(update, len(model.values))


Schedule = Callable[[int], float]  # from the step, counted from 1, to the learning rate


def warmup(d_model: int, warmup_steps: int = 4000, factor: float = 1.0) -> Schedule:
    """lr = factor · d^-.5 · min(s^-.5, s · w^-1.5): up in a line, then down as 1 / sqrt(s).

    Source: Vaswani et al. 2017, section 5.3.
    """
    _check_steps("warmup_steps", warmup_steps)
    return lambda step: factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def constant(lr: float) -> Schedule:
    """The same learning rate at every step, as in the first document's demo."""
    return lambda step: lr


def cosine(peak: float, total_steps: int, warmup_steps: int = 0) -> Schedule:
    """Up to the peak in a line, then down to 0 at total_steps along half a cosine.

    Source: Loshchilov and Hutter 2017.
    """
    _check_steps("total_steps", total_steps)

    def schedule(step: int) -> float:
        if step < warmup_steps:
            return peak * step / warmup_steps
        done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
        return peak * (1 + math.cos(math.pi * min(1.0, done))) / 2

    return schedule


def decayed(schedule: Schedule, total_steps: int, share: float) -> Schedule:
    """As the schedule says until the last share of the steps, and from there down to 0 in a line.

    lr = schedule(f) · (n - s) / (n - f) for s > f, with n = total_steps and f = first_decay(n, share).
    Source: Zhai et al. 2022, "Scaling vision transformers", section 3.5 (the cool-down).
    """
    _check_steps("total_steps", total_steps)
    first = first_decay(total_steps, share)

    def until_zero(step: int) -> float:
        if step <= first:
            return schedule(step)
        return schedule(max(1, first)) * max(0, total_steps - step) / (total_steps - first)

    return until_zero


def first_decay(total_steps: int, share: float) -> int:
    """The last step before a decay over that share of the steps."""
    return total_steps - round(share * total_steps)


def global_norm(grads: Any) -> float:
    """The length of the gradient of all parameters taken as one vector."""
    return math.sqrt(float(array_module(grads).vdot(grads, grads)))


def clip_global_norm(grads: Any, max_norm: float) -> float:
    """Shorten the gradient, in place, to max_norm where it is longer. Returns the length it had.

    Source: Pascanu et al. 2013.
    """
    norm = global_norm(grads)
    if norm > max_norm:
        grads *= max_norm / norm
    return norm


def _check_steps(name: str, steps: int) -> None:
    if steps < 1:
        raise UserError(f"{name} is {steps}: it must be 1 or more")
