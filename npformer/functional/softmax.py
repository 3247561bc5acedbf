"""Softmax and its logarithm over the last axis, with their backward passes."""

from npformer.backend import array_module


def softmax(x):
    """y_i = exp(x_i) / sum_j exp(x_j).

    An entry of -inf gets 0, and so does every entry of a row that is -inf throughout: a query that may
    look at nothing sees nothing.
    Shapes: x (..., N) -> y (..., N). The cache is y itself.
    """
    xp = array_module(x)
    # subtracting the row's maximum changes nothing and keeps exp from overflowing
    peak = x.real.max(-1, keepdims=True)  # (..., 1)
    peak = xp.where(xp.isfinite(peak), peak, 0)
    e = xp.exp(x - peak)  # (..., N)
    total = e.sum(-1, keepdims=True)  # (..., 1)
    y = e / xp.where(total.real == 0, 1, total)
    return y, y


def softmax_backward(dy, cache):
    """dx = y (dy - sum_j dy_j y_j).

    The Jacobian diag(y) - y yᵀ is never formed: its product with dy needs one sum a row.
    """
    y = cache
    # y_i = e_i / total: raising any x_j lowers every y_i by y_i y_j
    return y * (dy - (dy * y).sum(-1, keepdims=True))


def log_softmax(x):
    """y_i = x_i - log sum_j exp(x_j).

    Shapes: x (..., N) -> y (..., N). The cache is y itself.
    """
    xp = array_module(x)
    shifted = x - x.real.max(-1, keepdims=True)  # (..., N)
    y = shifted - xp.log(xp.exp(shifted).sum(-1, keepdims=True))
    return y, y


def log_softmax_backward(dy, cache):
    """dx = dy - softmax(x) sum_j dy_j."""
    y = cache
    xp = array_module(dy)
    # y_i = x_i - log total: every y_i falls by softmax_j when x_j rises
    return dy - xp.exp(y) * dy.sum(-1, keepdims=True)
