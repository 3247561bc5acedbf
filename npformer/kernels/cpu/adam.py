"""The Adam update, block by block.

A block fits into the cache of a core. With whole arrays, each operation would read and write the main memory.
"""

import math

import numpy as np

from npformer.backend import Array
from npformer.kernels.cpu.blocks import BLOCK


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
    buffer = np.empty(min(BLOCK, len(values)), values.dtype)
    for start in range(0, len(values), BLOCK):
        part = slice(start, start + BLOCK)
        g, mb, vb = grads[part], m[part], v[part]
        step = buffer[: len(g)]
        # m += (1 - β1) (g - m)
        np.subtract(g, mb, out=step)
        step *= 1 - beta1
        mb += step
        # v += (1 - β2) (g² - v)
        np.multiply(g, g, out=step)
        step -= vb
        step *= 1 - beta2
        vb += step
        # value -= rate m / (sqrt(v) + small)
        np.sqrt(vb, out=step)
        step += small
        np.divide(mb, step, out=step)
        step *= rate
        values[part] -= step
