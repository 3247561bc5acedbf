"""Layer normalization, alone and after a residual connection, block by block."""

from typing import NamedTuple

import numpy as np

from npformer.backend import Array, Generator
from npformer.functional.norm import LayerNormCache as PlainLayerNormCache
from npformer.functional.residual import AddNormCache as PlainAddNormCache
from npformer.functional.residual import check_residual
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.blocks import blocks, column_sums, row_sums
from npformer.kernels.shared import DropoutMask, as_rows, draw_dropout_mask


class LayerNormCache(PlainLayerNormCache):
    """The cache of this layer_norm."""

    __slots__ = ()


class AddNormCache(PlainAddNormCache):
    """The cache of this add_norm."""

    __slots__ = ()


class _Outputs(NamedTuple):
    """The arrays that the forward pass of a normalization computes, as rows."""

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
    rows = x.reshape(-1, x.shape[-1])  # (N, D)
    outputs = _allocate(rows)
    for block in blocks(*rows.shape):
        _normalize(rows[block], outputs, block, gain, bias, eps)
    return _shaped(outputs, x, gain)


@backward_of(LayerNormCache)
def layer_norm_backward(dy: Array, cache: LayerNormCache) -> tuple[Array, Array, Array]:
    """Return the gradients dx (..., D), dgain (D,) and dbias (D,)."""
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
    x_rows, h_rows = x.reshape(-1, x.shape[-1]), h.reshape(-1, h.shape[-1])  # (N, D)
    outputs = _allocate(x_rows)
    for block in blocks(*x_rows.shape):
        total = outputs.xhat[block]  # x + dropout(h), until _normalize overwrites it
        if dropout_mask is None:
            np.add(x_rows[block], h_rows[block], out=total)
        else:
            np.multiply(h_rows[block], as_rows(dropout_mask.kept)[block], out=total)
            total *= dropout_mask.factor
            total += x_rows[block]
        _normalize(total, outputs, block, gain, bias, eps)
    y, norm = _shaped(outputs, x, gain)
    return y, AddNormCache(dropout_mask, norm)


@backward_of(AddNormCache)
def add_norm_backward(dy: Array, cache: AddNormCache) -> tuple[Array, Array, Array, Array]:
    """Return the gradients dx (..., D), dh (..., D), dgain (D,) and dbias (D,)."""
    return _backward(dy, cache.norm, cache.dropout_mask)


def _allocate(rows: Array) -> _Outputs:
    """Return empty arrays for the outputs of a normalization of these rows (N, D)."""
    return _Outputs(np.empty_like(rows), np.empty_like(rows), np.empty((len(rows), 1), rows.dtype))


def _shaped(outputs: _Outputs, x: Array, gain: Array) -> tuple[Array, LayerNormCache]:
    """Return y in the shape of x, and the cache."""
    rstd = outputs.rstd.reshape(*x.shape[:-1], 1)
    return outputs.y.reshape(x.shape), LayerNormCache(outputs.xhat.reshape(x.shape), rstd, gain)


def _normalize(rows: Array, outputs: _Outputs, block: slice, gain: Array, bias: Array, eps: float) -> None:
    """Compute the outputs of a block of rows (n, D), which may be the block of xhat itself."""
    xhat, rstd, y = outputs.xhat[block], outputs.rstd[block], outputs.y[block]
    width = rows.shape[-1]
    np.subtract(rows, (row_sums(rows) / width)[:, None], out=xhat)
    variance = np.vecdot(xhat, xhat) / width
    rstd[:, 0] = 1 / np.sqrt(variance + eps)
    xhat *= rstd
    np.multiply(xhat, gain, out=y)
    y += bias


def _backward(
    dy: Array, cache: PlainLayerNormCache, dropout_mask: DropoutMask | None
) -> tuple[Array, Array, Array, Array]:
    """Return the gradients (dx, dh, dgain, dbias). dh is dx if nothing was dropped."""
    gain, width = cache.gain, dy.shape[-1]
    drows, xhat = dy.reshape(-1, width), cache.xhat.reshape(-1, width)  # (N, D)
    rstd = cache.rstd.reshape(-1, 1)
    dx = np.empty_like(drows)
    dh = dx if dropout_mask is None else np.empty_like(drows)
    dgain, dbias = np.zeros(width, gain.dtype), np.zeros(width, gain.dtype)
    for block in blocks(*drows.shape):
        dyb, xb, dxb = drows[block], xhat[block], dx[block]
        # y = gain xhat + bias
        dbias += column_sums(dyb)
        product = dyb * xb
        dgain += column_sums(product)
        # xhat = (x - mean) rstd: as in the plain pair, with dxhat = dy gain,
        # dx = rstd (dxhat - mean(dxhat) - xhat along), where along = mean(dxhat xhat)
        mean = dyb @ gain / width
        along = product @ gain / width
        np.multiply(dyb, gain, out=dxb)
        dxb -= mean[:, None]
        np.multiply(xb, along[:, None], out=product)
        dxb -= product
        dxb *= rstd[block]
        # the input of the norm is x + dropout(h)
        if dropout_mask is not None:
            np.multiply(dxb, as_rows(dropout_mask.kept)[block], out=dh[block])
            dh[block] *= dropout_mask.factor
    return dx.reshape(dy.shape), dh.reshape(dy.shape), dgain, dbias
