"""RMS normalization: Zhang and Sennrich 2019, section 4."""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


@cache_class
class RMSNormCache(NamedTuple):
    """The cache of rms_norm."""

    xhat: Array  # (..., D) the input with mean square 1 along each row
    rrms: Array  # (..., 1) one over the root mean square
    gain: Array  # (D,)


@sums_in_float32
def rms_norm(x: Array, gain: Array, eps: float = 1e-5) -> tuple[Array, RMSNormCache]:
    """Compute y = gain xhat, where xhat = x / sqrt(mean(x²) + eps) over the last axis.

    This is layer_norm without the subtraction of the mean and without a bias.

    Args:
        x: The input, of shape (..., D).
        gain: The scale of each number, of shape (D,).
        eps: A small number that prevents a division by zero.

    Returns:
        y, of shape (..., D), and the cache.

    Source: Zhang and Sennrich 2019, section 4.
    """
    xp = array_module(x)
    mean_square = (x * x).mean(-1, keepdims=True)  # (..., 1)
    rrms = 1 / xp.sqrt(mean_square + eps)  # (..., 1)
    xhat = x * rrms  # (..., D)
    return gain * xhat, RMSNormCache(xhat, rrms, gain)


@sums_in_float32
def rms_norm_backward(dy: Array, cache: RMSNormCache) -> tuple[Array, Array]:
    """Return the gradients dx (..., D) and dgain (D,) of y = gain xhat.

    rrms = (mean(x²) + eps)^(-1/2) has the derivative -rrms³ x_j / D with respect to x_j. So the product rule
    for xhat = x rrms gives dx_j = rrms dxhat_j - rrms³ x_j mean(dxhat x) = rrms (dxhat_j - xhat_j along).
    """
    xhat, rrms, gain = cache
    rows = tuple(range(dy.ndim - 1))  # all axes except the last: every row used the same gain
    # y = gain xhat
    dgain = (dy * xhat).sum(rows)  # (D,)
    dxhat = dy * gain  # (..., D)
    # xhat = x rrms, where rrms depends on the whole row: d rrms / dx_i = -rrms² xhat_i / D
    along = (dxhat * xhat).mean(-1, keepdims=True)  # (..., 1)
    dx = rrms * (dxhat - xhat * along)  # (..., D)
    return dx, dgain
