"""The linear map: the bias added in place, the weight's gradient written where it belongs."""

import numpy as np

from npformer.functional.linear import LinearCache
from npformer.kernels.cpu.blocks import column_sums
from npformer.kernels.shared import as_rows


def linear(x, weight, bias=None):
    """The plain pair's y = x weight + bias, without a second array for the sum."""
    y = as_rows(x) @ weight  # (N, O)
    if bias is not None:
        y += bias
    return y.reshape(*x.shape[:-1], weight.shape[1]), LinearCache(x, weight, bias is not None)


def linear_backward(dy, cache, out=None):
    """Gradients (dx, dweight, dbias). out (I, O): an array to write dweight into, instead of a new one."""
    x, weight, has_bias = cache
    drows = as_rows(dy)  # (N, O)
    # y = x weight + bias
    dbias = column_sums(drows) if has_bias else None  # (O,)
    dweight = np.matmul(as_rows(x).T, drows, out=out)  # (I, O)
    dx = drows @ weight.T  # (N, I)
    return dx.reshape(x.shape), dweight, dbias
