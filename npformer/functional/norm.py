"""Layer normalization: Ba et al. 2016, section 3."""

from typing import Any, NamedTuple

from npformer.backend import array_module


class LayerNormCache(NamedTuple):
    """What layer_norm_backward needs."""

    xhat: Any  # (..., D) the input with mean 0 and variance 1 along each row
    rstd: Any  # (..., 1) one over the standard deviation
    gain: Any  # (D,)


def layer_norm(x, gain, bias, eps=1e-5):
    """y = gain xhat + bias, with xhat = (x - mean) / sqrt(variance + eps) over the last axis.

    The variance is the biased one: the mean of the squares, over D and not D - 1.
    Shapes: x (..., D), gain and bias (D,) -> y (..., D).
    """
    xp = array_module(x)
    centered = x - x.mean(-1, keepdims=True)  # (..., D)
    variance = (centered * centered).mean(-1, keepdims=True)  # (..., 1)
    rstd = 1 / xp.sqrt(variance + eps)  # (..., 1)
    xhat = centered * rstd  # (..., D)
    return gain * xhat + bias, LayerNormCache(xhat, rstd, gain)


def layer_norm_backward(dy, cache):
    """Gradients (dx, dgain, dbias) of y = gain xhat + bias."""
    xhat, rstd, gain = cache
    rows = tuple(range(dy.ndim - 1))  # every axis but the last: gain and bias reached each row
    # y = gain xhat + bias
    dbias = dy.sum(rows)  # (D,)
    dgain = (dy * xhat).sum(rows)  # (D,)
    dxhat = dy * gain  # (..., D)
    # xhat = (x - mean) rstd: moving a whole row, or stretching it, changes nothing,
    # so the gradient loses its mean and its part along xhat
    along = (dxhat * xhat).mean(-1, keepdims=True)  # (..., 1)
    dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)
    return dx, dgain, dbias
