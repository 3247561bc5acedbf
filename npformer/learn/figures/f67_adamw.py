"""F67: a cosine schedule with a floor, and weight decay in AdamW beside an L2 penalty in Adam."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.learn.figures.registry import Drawing, figure
from npformer.nn.module import Module, Parameter
from npformer.plots import curves
from npformer.plots.composition import beside
from npformer.plots.style import number
from npformer.training.optimizer import Adam, AdamW, cosine

LR = 0.01


class Weights(Module):
    """A model of a few weights in one matrix, which all begin at 1."""

    def __init__(self, count: int) -> None:
        self.weight = Parameter(np.ones((1, count)))


@figure("F67", "Weight decay and the cosine schedule", "course", "FW")
def adamw(
    *,
    steps: int = 500,
    warmup_steps: int = 50,
    floor: float = 0.1,
    weight_decay: float = 0.1,
    gradients: Sequence[float] = (0.1, 10.0),
) -> Drawing:
    """Draw the learning rate of each step, and the values of weights whose gradients are 0 on average.

    Args:
        steps: The number of steps.
        warmup_steps: The steps of the warm-up of the schedule.
        floor: The last learning rate, as a share of the largest.
        weight_decay: The factor of the weights, λ.
        gradients: The absolute value of the gradient of each weight. Its sign alternates.
    Raises:
        UserError: If there are no weights or fewer than 2 steps, or the schedule is impossible.
    """
    if not len(gradients) or steps < 2:
        raise UserError("give at least 2 steps and one gradient")
    rates = list(map(cosine(LR, steps, warmup_steps, floor * LR), range(1, steps + 1)))
    decoupled, penalty = (_run(kind, gradients, steps, weight_decay) for kind in ("AdamW", "Adam"))  # (P, N)
    names = [f"{kind}, |g| = {g:g}" for kind in ("AdamW", "L2 in Adam") for g in gradients]
    picture = beside(
        [
            partial(curves, rates, np.arange(1, steps + 1), ylabel="learning rate"),
            partial(curves, np.hstack([decoupled, penalty]).T, labels=names, ylabel="weight", legend=True),
        ],
        names=["cosine schedule with a floor", "weights that only the decay moves"],
        down=True,
    )
    last = [", ".join(number(value) for value in run[-1]) for run in (decoupled, penalty)]
    return Drawing(
        picture,
        f"Top: the learning rate rises for {warmup_steps} steps and then falls along half a cosine to "
        f"{floor:g} of its largest value. Bottom: weights whose gradients change their sign in each step, so "
        f"that only the decay moves them; their size |g| is {' or '.join(f'{g:g}' for g in gradients)}. "
        f"AdamW shrinks all by the same factor: after {steps} steps they are {last[0]}. A penalty "
        f"in the gradient is divided by the size of the gradient, as Adam divides everything: {last[1]}.",
    )


def _run(kind: str, gradients: Sequence[float], steps: int, weight_decay: float) -> Array:
    """Return the weights before each step and after the last one, (steps + 1, N)."""
    model = Weights(len(gradients))
    optimizer = AdamW(model, weight_decay=weight_decay) if kind == "AdamW" else Adam(model)
    values = [model.weight.value[0].copy()]
    for step in range(steps):
        model.weight.grad[...] = np.array(gradients) * (-1) ** step
        if kind == "Adam":  # the gradient of λ w² / 2
            model.weight.grad += weight_decay * model.weight.value
        optimizer.step(LR)
        values.append(model.weight.value[0].copy())
    return np.array(values)
