"""Layer normalization, alone and after a residual connection, block by block."""

from typing import NamedTuple

import numpy as np

from npformer import functional as plain
from npformer.backend import Array, Generator
from npformer.functional.norm import LayerNormCache
from npformer.functional.residual import AddNormCache, check_residual
from npformer.kernels.cpu.blocks import blocks, column_sums, row_sums
from npformer.kernels.shared import DropoutMask, as_rows, draw_dropout_mask


class _Normed(NamedTuple):
    """The output arrays of a normalization, as rows."""

    y: Array  # (N, D)
    xhat: Array  # (N, D)
    rstd: Array  # (N, 1)


def layer_norm(x: Array, gain: Array, bias: Array, eps: float = 1e-5) -> tuple[Array, LayerNormCache]:
    """Compute y = gain xhat + bias, as npformer.functional.layer_norm does.

    Args:
        x: The input, of shape (..., D).
        gain, bias: The scale and the shift of each number, of shape (D,).
        eps: A small number that prevents a division by zero.

    Returns:
        y, of the shape of x, and the cache.
    """
    rows, made = as_rows(x), _make_room(x)
    for block in blocks(*rows.shape):
        np.copyto(made.xhat[block], rows[block])
        _normalize(made, block, gain, bias, eps)
    return _shaped(made, x, gain)


def layer_norm_backward(dy: Array, cache: LayerNormCache) -> tuple[Array, Array, Array]:
    """Return the gradients (dx, dgain, dbias)."""
    dx, _, dgain, dbias = _backward(dy, cache, None)
    return dx, dgain, dbias


def add_norm(
    x: Array,
    h: Array,
    gain: Array,
    bias: Array,
    eps: float = 1e-5,
    p: float = 0.0,
    rng: Generator | None = None,
) -> tuple[Array, AddNormCache]:
    """Compute y = norm(x + dropout(h)), as npformer.functional.add_norm does.

    Args:
        x, h: The input and the output of the sublayer, of shape (..., D).
        gain, bias: The scale and the shift of each number, of shape (D,).
        eps: A small number that prevents a division by zero.
        p: The dropout probability of h.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of the shape of x, and the cache.

    Raises:
        UserError: If x and h differ in shape.
    """
    check_residual(x, h)
    dropout_mask = draw_dropout_mask(h, p, rng)
    x_rows, h_rows, made = as_rows(x), as_rows(h), _make_room(x)
    for block in blocks(*x_rows.shape):
        xhat = made.xhat[block]
        if dropout_mask is None:
            np.add(x_rows[block], h_rows[block], out=xhat)
        else:
            np.multiply(h_rows[block], as_rows(dropout_mask.kept)[block], out=xhat)
            xhat *= dropout_mask.factor
            xhat += x_rows[block]
        _normalize(made, block, gain, bias, eps)
    y, norm = _shaped(made, x, gain)
    return y, AddNormCache(dropout_mask, norm)


def add_norm_backward(dy: Array, cache: AddNormCache) -> tuple[Array, Array, Array, Array]:
    """Return the gradients (dx, dh, dgain, dbias)."""
    if isinstance(cache.dropout_mask, np.ndarray):  # the mask of the plain pair
        return plain.add_norm_backward(dy, cache)
    return _backward(dy, cache.norm, cache.dropout_mask)


def _make_room(x: Array) -> _Normed:
    rows = as_rows(x)
    return _Normed(np.empty_like(rows), np.empty_like(rows), np.empty((len(rows), 1), x.dtype))


def _shaped(made: _Normed, x: Array, gain: Array) -> tuple[Array, LayerNormCache]:
    """Return the rows in the shape of x, and the cache."""
    rstd = made.rstd.reshape(*x.shape[:-1], 1)
    return made.y.reshape(x.shape), LayerNormCache(made.xhat.reshape(x.shape), rstd, gain)


def _normalize(made: _Normed, block: slice, gain: Array, bias: Array, eps: float) -> None:
    """Normalize the rows of xhat to mean 0 and variance 1, and write y."""
    xhat, rstd, y = made.xhat[block], made.rstd[block], made.y[block]
    width = xhat.shape[-1]
    xhat -= (row_sums(xhat) / width)[:, None]
    variance = np.vecdot(xhat, xhat) / width
    rstd[:, 0] = 1 / np.sqrt(variance + eps)
    xhat *= rstd
    np.multiply(xhat, gain, out=y)
    y += bias


def _backward(
    dy: Array, cache: LayerNormCache, dropout_mask: DropoutMask | None
) -> tuple[Array, Array, Array, Array]:
    """Return the gradients (dx, dh, dgain, dbias). dh is dx if nothing was dropped."""
    drows, xhat, rstd = as_rows(dy), as_rows(cache.xhat), cache.rstd.reshape(-1, 1)
    gain, width = cache.gain, dy.shape[-1]
    dx = np.empty_like(drows)
    dh = dx if dropout_mask is None else np.empty_like(drows)
    dgain, dbias = np.zeros_like(gain), np.zeros_like(gain)
    for block in blocks(*drows.shape):
        dyb, xb, dxb = drows[block], xhat[block], dx[block]
        # y = gain xhat + bias
        dbias += column_sums(dyb)
        moved = dyb * xb
        dgain += column_sums(moved)
        # xhat = (x - mean) rstd: the gradient loses its mean and its component along xhat
        mean = dyb @ gain / width  # of dxhat = dy gain
        along = moved @ gain / width
        np.multiply(dyb, gain, out=dxb)
        dxb -= mean[:, None]
        np.multiply(xb, along[:, None], out=moved)
        dxb -= moved
        dxb *= rstd[block]
        # the input of the norm is x + dropout(h)
        if dropout_mask is not None:
            np.multiply(dxb, as_rows(dropout_mask.kept)[block], out=dh[block])
            dh[block] *= dropout_mask.factor
    return dx.reshape(dy.shape), dh.reshape(dy.shape), dgain, dbias
