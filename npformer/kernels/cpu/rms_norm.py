"""RMS normalization, block by block."""

import numpy as np

from npformer.backend import Array
from npformer.functional.rms_norm import RMSNormCache as PlainRMSNormCache
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.blocks import blocks, column_sums


class RMSNormCache(PlainRMSNormCache):
    """The cache of this rms_norm."""

    __slots__ = ()


def rms_norm(x: Array, gain: Array, eps: float = 1e-5) -> tuple[Array, RMSNormCache]:
    """Compute y = gain xhat, where xhat = x / sqrt(mean(x²) + eps), as npformer.functional.rms_norm does.

    Args:
        x: The input, of shape (..., D).
        gain: The scale of each number, of shape (D,).
        eps: A small number that prevents a division by zero.

    Returns:
        y, of the shape of x, and the cache.
    """
    rows = x.reshape(-1, x.shape[-1])  # (N, D)
    y, xhat, rrms = np.empty_like(rows), np.empty_like(rows), np.empty((len(rows), 1), x.dtype)
    for block in blocks(*rows.shape):
        rrms[block, 0] = 1 / np.sqrt(np.vecdot(rows[block], rows[block]) / x.shape[-1] + eps)
        np.multiply(rows[block], rrms[block], out=xhat[block])
        np.multiply(xhat[block], gain, out=y[block])
    return y.reshape(x.shape), RMSNormCache(xhat.reshape(x.shape), rrms.reshape(*x.shape[:-1], 1), gain)


@backward_of(RMSNormCache)
def rms_norm_backward(dy: Array, cache: RMSNormCache) -> tuple[Array, Array]:
    """Return the gradients dx (..., D) and dgain (D,) of y = gain xhat."""
    gain, width = cache.gain, dy.shape[-1]
    drows, xhat = dy.reshape(-1, width), cache.xhat.reshape(-1, width)  # (N, D)
    rrms, dx = cache.rrms.reshape(-1, 1), np.empty_like(drows)
    dgain = np.zeros_like(gain)
    for block in blocks(*drows.shape):
        # y = gain xhat
        product = drows[block] * xhat[block]
        dgain += column_sums(product)
        # xhat = x rrms: as in the plain pair, dx = rrms (dxhat - xhat along)
        along = product @ gain / width
        np.multiply(drows[block], gain, out=dx[block])
        np.multiply(xhat[block], along[:, None], out=product)
        dx[block] -= product
        dx[block] *= rrms[block]
    return dx.reshape(dy.shape), dgain
