"""The optimizer Adam, learning-rate schedules and gradient clipping, on a model's flat buffers."""

import math
from collections.abc import Callable
from typing import Any

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.kernels import adam_update


class Adam:
    """The optimizer Adam. All parameters lie in one buffer, so that one loop updates them all.

    m = β1 m + (1 - β1) g,  v = β2 v + (1 - β2) g²,
    value -= lr · (m / (1 - β1^t)) / (sqrt(v / (1 - β2^t)) + eps), where t is the number of the step, from 1.

    Args:
        model: The model, whose parameters are moved into one buffer if they are not yet.
        betas: (β1, β2).
        eps: The small number in the denominator.

    Source: Kingma and Ba 2015; Vaswani et al. 2017, section 5.3 (β1 = .9, β2 = .98, eps = 1e-9).
    """

    def __init__(self, model: Any, *, betas: tuple[float, float] = (0.9, 0.98), eps: float = 1e-9) -> None:
        if model.values is None:
            model.flatten()
        self.model, self.betas, self.eps = model, betas, eps
        xp = array_module(model.values)
        self.m = xp.zeros_like(model.values)  # (P,) moving mean of the gradients
        self.v = xp.zeros_like(model.values)  # (P,) moving mean of their squares
        self.t = 0

    def step(self, lr: float, over: Callable[[Callable[[slice], Any], int], Any] | None = None) -> None:
        """Update the parameters. The gradients are not modified.

        Args:
            lr: The learning rate.
            over: A function over(update, size) that calls update with slices that together cover range(size),
                so that threads can share the work. By default, one call updates all parameters.
        """
        self.t += 1
        model = self.model

        def update(part: slice) -> None:
            arrays = (array[part] for array in (model.values, model.grads, self.m, self.v))
            adam_update(*arrays, lr, self.t, self.betas, self.eps)

        if over is None:
            update(slice(None))
        else:
            over(update, len(model.values))


Schedule = Callable[[int], float]  # the learning rate of a step, counted from 1


def warmup(d_model: int, warmup_steps: int = 4000, factor: float = 1.0) -> Schedule:
    """Return the paper's schedule: a linear increase, then a decrease as 1 / sqrt(s).

    lr = factor · d^-.5 · min(s^-.5, s · w^-1.5) at step s, with d = d_model and w = warmup_steps.

    Args:
        d_model: The width of the model.
        warmup_steps: The number of steps of the increase.
        factor: A number by which all learning rates are multiplied.

    Source: Vaswani et al. 2017, section 5.3.
    """
    _check_steps("warmup_steps", warmup_steps)
    return lambda step: factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def constant(lr: float) -> Schedule:
    """Return the schedule with the same learning rate at every step."""
    return lambda step: lr


def cosine(peak: float, total_steps: int, warmup_steps: int = 0) -> Schedule:
    """Return a schedule with a linear increase to the peak, then half a cosine down to 0 at total_steps.

    Args:
        peak: The largest learning rate.
        total_steps: The number of steps of the run.
        warmup_steps: The number of steps of the increase.

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
    """Return a schedule that follows another one and decays linearly to 0 in the last share of the steps.

    lr = schedule(f) · (n - s) / (n - f) for s > f, with n = total_steps and f = first_decay(n, share).

    Args:
        schedule: The schedule before the decay.
        total_steps: The number of steps of the run.
        share: The share of the steps in which the learning rate decays.

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
    """Return the last step before a decay over this share of the steps."""
    return total_steps - round(share * total_steps)


def global_norm(grads: Array) -> float:
    """Return the Euclidean norm of the gradient of all parameters as one vector."""
    return math.sqrt(float(array_module(grads).vdot(grads, grads)))


def clip_global_norm(grads: Array, max_norm: float) -> float:
    """Scale the gradient in place so that its norm is at most max_norm, and return the norm before scaling.

    Source: Pascanu et al. 2013.
    """
    norm = global_norm(grads)
    if norm > max_norm:
        grads *= max_norm / norm
    return norm


def _check_steps(name: str, steps: int) -> None:
    if steps < 1:
        raise UserError(f"{name} is {steps}: it must be 1 or more")
