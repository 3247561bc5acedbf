"""Adam's update: Kingma and Ba 2015."""

from npformer.backend import array_module


def adam_update(values, grads, m, v, lr, t, betas, eps):
    """m = β1 m + (1 - β1) g,  v = β2 v + (1 - β2) g²,  value -= lr m_hat / (sqrt(v_hat) + eps), in place.

    m_hat = m / (1 - β1^t) and v_hat = v / (1 - β2^t) make up for both having started at 0; t counts from 1.
    Shapes: all arrays (P,), a whole model laid out in one buffer.
    """
    beta1, beta2 = betas
    xp = array_module(values)
    m += (1 - beta1) * (grads - m)  # the gradients' moving mean
    v += (1 - beta2) * (grads * grads - v)  # and that of their squares
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    values -= lr * m_hat / (xp.sqrt(v_hat) + eps)
