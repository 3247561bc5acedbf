"""Adam in one kernel: seven arrays' worth of memory moved, where the plain formulas move about thirty."""

import math

from npformer.backend import fused


@fused
def adam_step(xp, values, grads, m, v, toward_mean, toward_square, rate, small):
    """Move values, m and v, in place. Shapes: (P,)."""
    m += toward_mean * (grads - m)
    v += toward_square * (grads * grads - v)
    values -= rate * m / (xp.sqrt(v) + small)


def adam_update(values, grads, m, v, lr, t, betas, eps):
    """The plain update of values, m and v, all (P,), in place."""
    beta1, beta2 = betas
    # value -= lr (m / c1) / (sqrt(v / c2) + eps) = rate m / (sqrt(v) + small), c1 and c2 being numbers
    c1, c2 = 1 - beta1**t, 1 - beta2**t
    rate, small = lr * math.sqrt(c2) / c1, eps * math.sqrt(c2)
    adam_step(values, grads, m, v, *map(float, (1 - beta1, 1 - beta2, rate, small)))
