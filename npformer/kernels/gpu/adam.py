"""The Adam update in one GPU kernel.

The kernel reads and writes seven arrays. The separate operations of the plain function access about thirty.
"""

import math
from typing import Any

from npformer.backend import Array, fused


@fused
def adam_step(
    xp: Any,
    values: Array,
    grads: Array,
    m: Array,
    v: Array,
    toward_mean: float,
    toward_square: float,
    rate: float,
    small: float,
) -> None:
    """Update values, m and v in place, inside one kernel.

    Args:
        xp: The array module.
        values, grads, m, v: Arrays of shape (P,).
        toward_mean, toward_square: 1 - β1 and 1 - β2.
        rate: The learning rate with the correction of both averages.
        small: eps with the correction of the second average.
    """
    m += toward_mean * (grads - m)
    v += toward_square * (grads * grads - v)
    values -= rate * m / (xp.sqrt(v) + small)


def adam_update(
    values: Array, grads: Array, m: Array, v: Array, lr: float, t: int, betas: tuple[float, float], eps: float
) -> None:
    """Update the parameters and both moving averages in place, as npformer.functional.adam_update does.

    Args:
        values, grads, m, v: The parameters, their gradients and the two moving averages, of shape (P,).
        lr: The learning rate.
        t: The number of this update, counted from 1.
        betas: β1 and β2.
        eps: A small number that prevents a division by zero.
    """
    beta1, beta2 = betas
    # value -= lr (m / c1) / (sqrt(v / c2) + eps) = rate m / (sqrt(v) + small)
    c1, c2 = 1 - beta1**t, 1 - beta2**t
    rate, small = lr * math.sqrt(c2) / c1, eps * math.sqrt(c2)
    adam_step(values, grads, m, v, *map(float, (1 - beta1, 1 - beta2, rate, small)))
