"""The linear map, one product of two matrices as cuBLAS likes it best: there, transposing costs no copy."""

from npformer.backend import array_module
from npformer.kernels.cpu.linear import linear  # the bias is added in place here too
from npformer.kernels.shared import as_rows

__all__ = ["linear", "linear_backward"]


def linear_backward(dy, cache, out=None):
    """Gradients (dx, dweight, dbias). out (I, O): an array to write dweight into, instead of a new one."""
    x, weight, has_bias = cache
    xp, rows, drows = array_module(dy), as_rows(x), as_rows(dy)  # (N, I), (N, O)
    # y = x weight + bias
    dbias = drows.sum(0) if has_bias else None  # (O,)
    if out is None:
        out = rows.T @ drows  # (I, O)
    elif out.flags.c_contiguous:
        xp.matmul(rows.T, drows, out=out)
    else:  # the weight is another's, transposed: CuPy would make the product elsewhere, and copy it
        xp.matmul(drows.T, rows, out=out.T)
    dx = drows @ weight.T  # (N, I)
    return dx.reshape(x.shape), out, dbias
