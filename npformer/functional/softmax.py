"""The softmax and its logarithm over the last axis, with their backward passes."""

from npformer.backend import Array, array_module


def softmax(x: Array) -> tuple[Array, Array]:
    """Compute y_i = exp(x_i) / Σ_j exp(x_j) over the last axis.

    The result is 0 at an entry of -inf. If all entries of a row are -inf, the whole row is 0, so a query that
    may attend to no key has the output 0.

    Shapes: x (..., N) -> y (..., N).

    Returns:
        y, and the cache, which is y itself.
    """
    xp = array_module(x)
    # subtracting the maximum of the row does not change the result, and exp cannot overflow
    peak = x.real.max(-1, keepdims=True)  # (..., 1)
    peak = xp.where(xp.isfinite(peak), peak, 0)
    e = xp.exp(x - peak)  # (..., N)
    total = e.sum(-1, keepdims=True)  # (..., 1)
    y = e / xp.where(total.real == 0, 1, total)
    return y, y


def softmax_backward(dy: Array, cache: Array) -> Array:
    """Return dx = y (dy - Σ_j dy_j y_j).

    The Jacobian diag(y) - y yᵀ is never formed: its product with dy needs one sum for each row.
    """
    y = cache
    # y_i = e_i / total: the derivative of y_i with respect to x_j is y_i ([i = j] - y_j)
    return y * (dy - (dy * y).sum(-1, keepdims=True))


def log_softmax(x: Array) -> tuple[Array, Array]:
    """Compute y_i = x_i - log Σ_j exp(x_j) over the last axis.

    Shapes: x (..., N) -> y (..., N).

    Returns:
        y, and the cache, which is y itself.
    """
    xp = array_module(x)
    shifted = x - x.real.max(-1, keepdims=True)  # (..., N)
    y = shifted - xp.log(xp.exp(shifted).sum(-1, keepdims=True))
    return y, y


def log_softmax_backward(dy: Array, cache: Array) -> Array:
    """Return dx = dy - softmax(x) Σ_j dy_j."""
    y = cache
    xp = array_module(dy)
    # y_i = x_i - log total: the derivative of y_i with respect to x_j is [i = j] - softmax_j
    return dy - xp.exp(y) * dy.sum(-1, keepdims=True)
