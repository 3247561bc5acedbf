"""The linear map y = x weight + bias, and the gradient of broadcast arrays."""

from typing import NamedTuple

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


@cache_class
class LinearCache(NamedTuple):
    """The cache of linear."""

    x: Array  # (..., I)
    weight: Array  # (I, O)
    has_bias: bool


def linear(x: Array, weight: Array, bias: Array | None = None) -> tuple[Array, LinearCache]:
    """Compute y = x weight + bias.

    Args:
        x: The input, of shape (..., I).
        weight: The matrix, of shape (I, O).
        bias: The shift, of shape (O,), or None.

    Returns:
        y, of shape (..., O), and the cache.
    """
    # every position of every sentence is a row of one matrix, so that one matrix product suffices
    rows = x.reshape(-1, x.shape[-1])  # (N, I)
    y = rows @ weight  # (N, O)
    if bias is not None:
        y = y + bias
    return y.reshape(*x.shape[:-1], weight.shape[1]), LinearCache(x, weight, bias is not None)


@sums_in_float32
def linear_backward(dy: Array, cache: LinearCache) -> tuple[Array, Array, Array | None]:
    """Return the gradients dx (..., I), dweight (I, O) and dbias (O,), which is None if there is no bias."""
    x, weight, has_bias = cache
    rows = x.reshape(-1, x.shape[-1])  # (N, I)
    drows = dy.reshape(-1, dy.shape[-1])  # (N, O)
    # y = x weight + bias. The bias was added to every row, so its gradient is the sum over the rows
    dbias = drows.sum(0) if has_bias else None  # (O,)
    dweight = rows.T @ drows  # (I, O)
    dx = drows @ weight.T  # (N, I)
    return dx.reshape(x.shape), dweight, dbias


def sum_to_shape(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum the gradient of a broadcast array over the axes along which the array was repeated.

    An entry that was used several times receives the sum of the gradients of all its uses.

    Args:
        gradient: The gradient of the array after broadcasting, of any shape to which `shape` broadcasts.
        shape: The shape of the array before broadcasting.

    Returns:
        The gradient of the array, with this shape. It is `gradient` itself if nothing was broadcast.
    """
    if gradient.shape == tuple(shape):
        return gradient
    lead = gradient.ndim - len(shape)
    repeated = (lead + i for i, n in enumerate(shape) if n == 1)
    return _summed(gradient, (*range(lead), *repeated)).reshape(shape)


@sums_in_float32
def _summed(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the sum over these axes."""
    return x.sum(axes)
