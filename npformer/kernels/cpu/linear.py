"""The linear map. The bias is added in place, and the gradient of the weight is a LazyProduct."""

from npformer.backend import Array
from npformer.functional.linear import LinearCache as PlainLinearCache
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.blocks import column_sums
from npformer.kernels.lazy import LazyProduct


class LinearCache(PlainLinearCache):
    """The cache of this linear map."""

    __slots__ = ()


def linear(x: Array, weight: Array, bias: Array | None = None) -> tuple[Array, LinearCache]:
    """Compute y = x weight + bias without a second array for the sum.

    Args:
        x: The input, of shape (..., I).
        weight: The matrix, of shape (I, O).
        bias: The shift, of shape (O,), or None.

    Returns:
        y, of shape (..., O), and the cache.
    """
    y = x.reshape(-1, x.shape[-1]) @ weight  # (N, O)
    if bias is not None:
        y += bias
    return y.reshape(*x.shape[:-1], weight.shape[1]), LinearCache(x, weight, bias is not None)


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
