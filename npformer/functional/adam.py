"""The update of the Adam optimizer, Kingma and Ba 2015, and the weight decay of AdamW."""

from npformer.backend import Array, array_module


def adam_update(
    values: Array, grads: Array, m: Array, v: Array, lr: float, t: int, betas: tuple[float, float], eps: float
) -> None:
    """Update the parameters and both moving averages in place.

        m = β1 m + (1 - β1) g          the moving average of the gradients
        v = β2 v + (1 - β2) g²         the moving average of their squares
        m_hat = m / (1 - β1^t),  v_hat = v / (1 - β2^t)
        value -= lr m_hat / (sqrt(v_hat) + eps)

    m and v are 0 before the first update, so at first they are too small. m_hat and v_hat correct this.

    Args:
        values: The parameters of a whole model in one buffer, of shape (P,).
        grads: Their gradients, of shape (P,).
        m: The moving average of the gradients, of shape (P,).
        v: The moving average of the squared gradients, of shape (P,).
        lr: The learning rate.
        t: The number of this update, counted from 1.
        betas: β1 and β2.
        eps: A small number that prevents a division by zero.

    Source: Kingma and Ba 2015, algorithm 1.
    """
    beta1, beta2 = betas
    xp = array_module(values)
    m += (1 - beta1) * (grads - m)  # the moving average of the gradients
    v += (1 - beta2) * (grads * grads - v)  # the moving average of their squares
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    values -= lr * m_hat / (xp.sqrt(v_hat) + eps)


def decay_weights(values: Array, lr: float, weight_decay: float) -> None:
    """Move parameters towards 0 in place: value -= lr λ value.

    The decay is decoupled from the gradient: Adam would divide the gradient λ value of an L2 penalty by the
    root of v, so that parameters with large gradients would hardly decay.

    Args:
        values: The parameters that decay, of any shape.
        lr: The learning rate.
        weight_decay: λ.

    Source: Loshchilov and Hutter 2019, algorithm 2.
    """
    values *= 1 - lr * weight_decay
