"""The softmax and its logarithm over the last axis, with their backward passes."""

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.half import sums_in_float32


def check_entries(x: Array) -> None:
    """Raise UserError if the rows of x are empty. Shapes: x (..., N)."""
    if x.shape[-1] == 0:
        raise UserError(
            f"a softmax needs at least one entry in each row, and got an array of shape {x.shape}"
        )


@sums_in_float32
def softmax(x: Array) -> tuple[Array, Array]:
    """Compute y_i = exp(x_i) / Σ_j exp(x_j) over the last axis.

    y is 0 where x is -inf. If all entries of a row are -inf, the whole row of y is 0. So if all keys of a
    query are masked, the output of attention for this query is 0.

    Shapes: x (..., N) -> y (..., N).

    Returns:
        y, and the cache, which is y itself.
    """
    xp = array_module(x)
    check_entries(x)
    # subtracting the maximum of the row does not change the result, and prevents an overflow of exp
    peak = x.real.max(-1, keepdims=True)  # (..., 1)
    peak = xp.where(xp.isfinite(peak), peak, 0)
    e = xp.exp(x - peak)  # (..., N)
    total = e.sum(-1, keepdims=True)  # (..., 1)
    y = e / xp.where(total.real == 0, 1, total)
    return y, y


@sums_in_float32
def softmax_backward(dy: Array, cache: Array) -> Array:
    """Return dx_j = y_j (dy_j - Σ_i dy_i y_i), of shape (..., N).

    The matrix of all derivatives ∂y_i/∂x_j is not computed, since one sum for each row suffices.
    """
    y = cache
    # y_i = exp(x_i) / Σ_k exp(x_k). By the quotient rule, the derivative of y_i with respect to x_j is
    # y_i (1 - y_j) if i = j, and -y_i y_j otherwise. Every y_i depends on x_j, so the chain rule sums over i:
    # dx_j = Σ_i dy_i ∂y_i/∂x_j = dy_j y_j - Σ_i dy_i y_i y_j = y_j (dy_j - Σ_i dy_i y_i)
    return y * (dy - (dy * y).sum(-1, keepdims=True))


@sums_in_float32
def log_softmax(x: Array) -> tuple[Array, Array]:
    """Compute y_i = x_i - log Σ_j exp(x_j) over the last axis.

    Shapes: x (..., N) -> y (..., N).

    Returns:
        y, and the cache, which is y itself.
    """
    xp = array_module(x)
    check_entries(x)
    shifted = x - x.real.max(-1, keepdims=True)  # (..., N)
    y = shifted - xp.log(xp.exp(shifted).sum(-1, keepdims=True))
    return y, y


@sums_in_float32
def log_softmax_backward(dy: Array, cache: Array) -> Array:
    """Return dx_j = dy_j - softmax(x)_j Σ_i dy_i, of shape (..., N)."""
    y = cache
    xp = array_module(dy)
    # y_i = x_i - log Σ_k exp(x_k). The derivative of y_i with respect to x_j is 1 - softmax_j if i = j, and
    # -softmax_j otherwise. The chain rule sums over i: dx_j = dy_j - softmax_j Σ_i dy_i. softmax is exp(y)
    return dy - xp.exp(y) * dy.sum(-1, keepdims=True)
