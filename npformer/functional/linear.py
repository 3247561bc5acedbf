"""The linear map, the one operation that does nearly all the work."""

from typing import Any, NamedTuple


class LinearCache(NamedTuple):
    """What linear_backward needs: the input and the weight, and whether there was a bias."""

    x: Any  # (..., I)
    weight: Any  # (I, O)
    has_bias: bool


def linear(x, weight, bias=None):
    """y = x weight + bias.

    Shapes: x (..., I), weight (I, O), bias (O,) -> y (..., O).
    """
    # one product of two matrices: every position is a row, whichever sentence it comes from
    rows = x.reshape(-1, x.shape[-1])  # (N, I)
    y = rows @ weight  # (N, O)
    if bias is not None:
        y = y + bias
    return y.reshape(*x.shape[:-1], weight.shape[1]), LinearCache(x, weight, bias is not None)


def linear_backward(dy, cache):
    """Gradients (dx, dweight, dbias) of y = x weight + bias; dbias is None where there was none."""
    x, weight, has_bias = cache
    rows = x.reshape(-1, x.shape[-1])  # (N, I)
    drows = dy.reshape(-1, dy.shape[-1])  # (N, O)
    # y = x weight + bias: the bias reached every row
    dbias = drows.sum(0) if has_bias else None  # (O,)
    dweight = rows.T @ drows  # (I, O)
    dx = drows @ weight.T  # (N, I)
    return dx.reshape(x.shape), dweight, dbias
