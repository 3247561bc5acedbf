"""The linear map as one product of two matrices, which cuBLAS can transpose without a copy."""

from npformer.backend import Array
from npformer.functional.linear import LinearCache
from npformer.kernels.cpu.linear import linear  # the same function as for NumPy
from npformer.kernels.gpu.sums import column_sums
from npformer.kernels.lazy import LazyProduct
from npformer.kernels.shared import as_rows

__all__ = ["linear", "linear_backward"]


def linear_backward(dy: Array, cache: LinearCache) -> tuple[Array, LazyProduct, Array | None]:
    """Return the gradients dx (..., I), dweight (I, O), which is a LazyProduct, and dbias (O,) or None."""
    x, weight, has_bias = cache
    drows = as_rows(dy)  # (N, O)
    # y = x weight + bias
    dbias = column_sums(drows) if has_bias else None  # (O,)
    dweight = LazyProduct(as_rows(x), drows)  # (I, O)
    dx = drows @ weight.T  # (N, I)
    return dx.reshape(x.shape), dweight, dbias
