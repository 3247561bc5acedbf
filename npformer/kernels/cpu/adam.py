"""Adam over the flat buffers in pieces that stay in the cache, where whole arrays go to memory ten times."""

import math

import numpy as np

from npformer.kernels.cpu.blocks import BLOCK


def adam_update(values, grads, m, v, lr, t, betas, eps):
    """The plain update of values, m and v, all (P,), in place."""
    beta1, beta2 = betas
    # value -= lr (m / c1) / (sqrt(v / c2) + eps) = rate m / (sqrt(v) + small), c1 and c2 being numbers
    c1, c2 = 1 - beta1**t, 1 - beta2**t
    rate, small = lr * math.sqrt(c2) / c1, eps * math.sqrt(c2)
    room = np.empty(min(BLOCK, len(values)), values.dtype)
    for start in range(0, len(values), BLOCK):
        part = slice(start, start + BLOCK)
        g, mb, vb = grads[part], m[part], v[part]
        step = room[: len(g)]
        np.subtract(g, mb, out=step)
        step *= 1 - beta1
        mb += step
        np.multiply(g, g, out=step)
        step -= vb
        step *= 1 - beta2
        vb += step
        np.sqrt(vb, out=step)
        step += small
        np.divide(mb, step, out=step)
        step *= rate
        values[part] -= step
