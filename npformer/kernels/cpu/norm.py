"""Layer normalization, alone and with the residual before it, block by block."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional.norm import LayerNormCache
from npformer.functional.residual import ResidualNormCache
from npformer.kernels.cpu.blocks import blocks, column_sums, row_sums
from npformer.kernels.shared import KeptCache, as_rows, draw_kept


class _Normed(NamedTuple):
    """The arrays that a normalization fills, as rows."""

    y: Any  # (N, D)
    xhat: Any  # (N, D)
    rstd: Any  # (N, 1)


def layer_norm(x, gain, bias, eps=1e-5):
    """The plain pair's y = gain xhat + bias."""
    rows, made = as_rows(x), _make_room(x)
    for block in blocks(*rows.shape):
        np.copyto(made.xhat[block], rows[block])
        _normalize(made, block, gain, bias, eps)
    return _shaped(made, x, gain)


def layer_norm_backward(dy, cache):
    """Gradients (dx, dgain, dbias)."""
    dx, _, dgain, dbias = _backward(dy, cache, None)
    return dx, dgain, dbias


def residual_norm(x, h, gain, bias, eps=1e-5, rate=0.0, rng=None):
    """The plain pair's y = norm(x + dropout(h))."""
    keep = draw_kept(h, rate, rng)
    x_rows, h_rows, made = as_rows(x), as_rows(h), _make_room(x)
    for block in blocks(*x_rows.shape):
        xhat = made.xhat[block]
        if keep is None:
            np.add(x_rows[block], h_rows[block], out=xhat)
        else:
            np.multiply(h_rows[block], as_rows(keep.kept)[block], out=xhat)
            xhat *= keep.factor
            xhat += x_rows[block]
        _normalize(made, block, gain, bias, eps)
    y, norm = _shaped(made, x, gain)
    return y, ResidualNormCache(keep, norm)


def residual_norm_backward(dy, cache):
    """Gradients (dx, dh, dgain, dbias)."""
    return _backward(dy, cache.norm, cache.keep)


def _make_room(x) -> _Normed:
    rows = as_rows(x)
    return _Normed(np.empty_like(rows), np.empty_like(rows), np.empty((len(rows), 1), x.dtype))


def _shaped(made: _Normed, x, gain):
    """The rows in the shape of x. Returns (y, cache)."""
    rstd = made.rstd.reshape(*x.shape[:-1], 1)
    return made.y.reshape(x.shape), LayerNormCache(made.xhat.reshape(x.shape), rstd, gain)


def _normalize(made: _Normed, block: slice, gain, bias, eps: float) -> None:
    """Turn the rows that lie in xhat into rows of mean 0 and variance 1, and those into y."""
    xhat, rstd, y = made.xhat[block], made.rstd[block], made.y[block]
    width = xhat.shape[-1]
    xhat -= (row_sums(xhat) / width)[:, None]
    variance = np.vecdot(xhat, xhat) / width
    rstd[:, 0] = 1 / np.sqrt(variance + eps)
    xhat *= rstd
    np.multiply(xhat, gain, out=y)
    y += bias


def _backward(dy, cache: LayerNormCache, keep: KeptCache | None):
    """Gradients (dx, dh, dgain, dbias); dh is dx, where nothing was dropped."""
    drows, xhat, rstd = as_rows(dy), as_rows(cache.xhat), cache.rstd.reshape(-1, 1)
    gain, width = cache.gain, dy.shape[-1]
    dx = np.empty_like(drows)
    dh = dx if keep is None else np.empty_like(drows)
    dgain, dbias = np.zeros_like(gain), np.zeros_like(gain)
    for block in blocks(*drows.shape):
        dyb, xb, dxb = drows[block], xhat[block], dx[block]
        # y = gain xhat + bias
        dbias += column_sums(dyb)
        moved = dyb * xb
        dgain += column_sums(moved)
        # xhat = (x - mean) rstd: the gradient loses its mean and its part along xhat
        mean = dyb @ gain / width  # of dxhat = dy gain
        along = moved @ gain / width
        np.multiply(dyb, gain, out=dxb)
        dxb -= mean[:, None]
        np.multiply(xb, along[:, None], out=moved)
        dxb -= moved
        dxb *= rstd[block]
        # x = x + dropout(h)
        if keep is not None:
            np.multiply(dxb, as_rows(keep.kept)[block], out=dh[block])
            dh[block] *= keep.factor
    return dx.reshape(dy.shape), dh.reshape(dy.shape), dgain, dbias
