"""The linear map as one product of two matrices, which cuBLAS can transpose without a copy."""

from npformer.backend import Array
from npformer.functional.linear import LinearCache as PlainLinearCache
from npformer.kernels import cpu
from npformer.kernels.choice import backward_of, with_cache
from npformer.kernels.gpu.sums import column_sums
from npformer.kernels.lazy import LazyProduct


class LinearCache(PlainLinearCache):
    """The cache of this linear map."""

    __slots__ = ()


linear = with_cache(cpu.linear, LinearCache)


@backward_of(LinearCache)
def linear_backward(dy: Array, cache: LinearCache) -> tuple[Array, LazyProduct, Array | None]:
    """Return the gradients dx (..., I), dweight (I, O), which is a LazyProduct, and dbias (O,) or None."""
    x, weight, has_bias = cache
    rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])  # (N, I), (N, O)
    # y = x weight + bias
    dbias = column_sums(drows) if has_bias else None  # (O,)
    dweight = LazyProduct(rows, drows)  # (I, O)
    dx = drows @ weight.T  # (N, I)
    return dx.reshape(x.shape), dweight, dbias
