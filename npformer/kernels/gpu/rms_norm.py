"""RMS normalization: two GPU kernels forward, and four backward with the sum of columns."""

from typing import Any

from npformer.backend import Array, fused
from npformer.functional.rms_norm import RMSNormCache as PlainRMSNormCache
from npformer.kernels.choice import backward_of
from npformer.kernels.gpu.norm import row_gradient
from npformer.kernels.gpu.sums import column_sums
from npformer.kernels.shared import as_rows


class RMSNormCache(PlainRMSNormCache):
    """The cache of this rms_norm."""

    __slots__ = ()


@fused
def row_rrms(xp: Any, x: Array, part: float, eps: float) -> Array:
    """Return 1 / sqrt(mean(x²) + eps) of each row, of shape (N,).

    Args:
        xp: The array module.
        x: The input, of shape (N, D).
        part: 1 / D.
        eps: A small number that prevents a division by zero.
    """
    # a fused kernel may not use an argument after the sum, so eps is added before it
    return 1 / xp.sqrt(xp.sum((x * x + eps) * part, axis=-1))


@fused
def scale_rows(xp: Any, x: Array, rrms: Array, gain: Array) -> tuple[Array, Array]:
    """Return (y, xhat), both of shape (N, D).

    Args:
        xp: The array module.
        x: The input, of shape (N, D).
        rrms: The result of row_rrms, of shape (N, 1).
        gain: The scale of each number, of shape (D,).
    """
    xhat = x * rrms
    return gain * xhat, xhat


@fused
def input_gradient(xp: Any, dy: Array, gain: Array, xhat: Array, rrms: Array, along: Array) -> Array:
    """Return dx, of shape (N, D).

    Args:
        xp: The array module.
        dy, xhat: The gradient of y, and the normalized rows, of shape (N, D).
        gain: The scale of each number, of shape (D,).
        rrms: One over the root mean square of each row, of shape (N, 1).
        along: The result of row_gradient with xhat, of shape (N, 1).
    """
    return rrms * (dy * gain - xhat * along)


def rms_norm(x: Array, gain: Array, eps: float = 1e-5) -> tuple[Array, RMSNormCache]:
    """Compute y = gain xhat, where xhat = x / sqrt(mean(x²) + eps), as npformer.functional.rms_norm does.

    Args:
        x: The input, of shape (..., D).
        gain: The scale of each number, of shape (D,).
        eps: A small number that prevents a division by zero.

    Returns:
        y, of the shape of x, and the cache.
    """
    rows = as_rows(x)  # (N, D)
    rrms = row_rrms(rows, 1 / x.shape[-1], eps)[:, None]  # (N, 1)
    y, xhat = scale_rows(rows, rrms, gain)  # (N, D)
    return y.reshape(x.shape), RMSNormCache(xhat.reshape(x.shape), rrms.reshape(*x.shape[:-1], 1), gain)


@backward_of(RMSNormCache)
def rms_norm_backward(dy: Array, cache: RMSNormCache) -> tuple[Array, Array]:
    """Return the gradients dx (..., D) and dgain (D,) of y = gain xhat."""
    drows, xhat, rrms, gain = as_rows(dy), as_rows(cache.xhat), as_rows(cache.rrms), cache.gain
    # y = gain xhat
    dgain = column_sums(drows * xhat)  # (D,)
    # xhat = x rrms: as in the plain pair, with dxhat = dy gain,
    # dx = rrms (dxhat - xhat along), where along = mean(dxhat xhat)
    along = row_gradient(drows, gain, xhat, 1 / dy.shape[-1])[:, None]  # (N, 1)
    dx = input_gradient(drows, gain, xhat, rrms, along)  # (N, D)
    return dx.reshape(dy.shape), dgain
