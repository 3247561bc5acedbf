"""Layer normalization: Ba et al. 2016, section 3."""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


@cache_class
class LayerNormCache(NamedTuple):
    """The cache of layer_norm."""

    xhat: Array  # (..., D) the input with mean 0 and variance 1 along each row
    rstd: Array  # (..., 1) one over the standard deviation
    gain: Array  # (D,)


@sums_in_float32
def layer_norm(x: Array, gain: Array, bias: Array, eps: float = 1e-5) -> tuple[Array, LayerNormCache]:
    """Compute y = gain xhat + bias, where xhat = (x - mean) / sqrt(variance + eps) over the last axis.

    This is the biased variance: the sum of the squares is divided by D and not by D - 1.

    Args:
        x: The input, of shape (..., D).
        gain: The scale of each number, of shape (D,).
        bias: The shift of each number, of shape (D,).
        eps: A small number that prevents a division by zero.

    Returns:
        y, of shape (..., D), and the cache.

    Source: Ba et al. 2016, section 3.
    """
    xp = array_module(x)
    centered = x - x.mean(-1, keepdims=True)  # (..., D)
    variance = (centered * centered).mean(-1, keepdims=True)  # (..., 1)
    rstd = 1 / xp.sqrt(variance + eps)  # (..., 1)
    xhat = centered * rstd  # (..., D)
    return gain * xhat + bias, LayerNormCache(xhat, rstd, gain)


@sums_in_float32
def layer_norm_backward(dy: Array, cache: LayerNormCache) -> tuple[Array, Array, Array]:
    """Return the gradients dx (..., D), dgain (D,) and dbias (D,) of y = gain xhat + bias."""
    xhat, rstd, gain = cache
    rows = tuple(range(dy.ndim - 1))  # all axes except the last: every row used the same gain and bias
    # y = gain xhat + bias
    dbias = dy.sum(rows)  # (D,)
    dgain = (dy * xhat).sum(rows)  # (D,)
    dxhat = dy * gain  # (..., D)
    # xhat = (x - mean) rstd, where mean and rstd depend on the whole row: d mean / dx_i = 1 / D
    # and d rstd / dx_i = -rstd² xhat_i / D
    along = (dxhat * xhat).mean(-1, keepdims=True)  # (..., 1)
    dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)
    return dx, dgain, dbias
