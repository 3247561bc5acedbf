"""Layer normalization, alone and after a residual connection: three GPU kernels forward, five backward.

The sum x + dropout(h) is not stored. Each kernel that needs it computes it again.
"""

from typing import Any

from npformer.backend import Array, Generator, fused
from npformer.functional.norm import LayerNormCache as PlainLayerNormCache
from npformer.functional.residual import AddNormCache as PlainAddNormCache
from npformer.functional.residual import check_residual
from npformer.kernels.choice import backward_of
from npformer.kernels.gpu.sums import column_sums
from npformer.kernels.shared import DropoutMask, as_rows, draw_dropout_mask


class LayerNormCache(PlainLayerNormCache):
    """The cache of this layer_norm."""

    __slots__ = ()


class AddNormCache(PlainAddNormCache):
    """The cache of this add_norm."""

    __slots__ = ()


def _added(x: Array, h: Array | None, kept: Array | None, factor: float | None) -> Array:
    """Compute x + dropout(h) inside a kernel, or x if h is None."""
    if h is None:
        return x
    return x + h if kept is None else x + h * kept * factor


@fused
def row_mean(
    xp: Any, x: Array, h: Array | None, kept: Array | None, factor: float | None, part: float
) -> Array:
    """Return the mean of each row of x + dropout(h), of shape (N,).

    Args:
        xp: The array module.
        x, h, kept: Arrays of shape (N, D). h is None if only x is normalized, kept is None without dropout.
        factor: The factor of dropout, or None.
        part: 1 / D.
    """
    return xp.sum(_added(x, h, kept, factor) * part, axis=-1)


@fused
def row_rstd(
    xp: Any,
    x: Array,
    h: Array | None,
    kept: Array | None,
    factor: float | None,
    mean: Array,
    part: float,
    eps: float,
) -> Array:
    """Return 1 / sqrt(variance + eps) of each row of x + dropout(h), of shape (N,).

    Args:
        xp: The array module.
        x, h, kept: Arrays of shape (N, D). h is None if only x is normalized, kept is None without dropout.
        factor: The factor of dropout, or None.
        mean: The mean of each row, of shape (N, 1).
        part: 1 / D.
        eps: A small number that prevents a division by zero.
    """
    centered = _added(x, h, kept, factor) - mean
    # a fused kernel may not use an argument after the sum, so eps is added before it
    return 1 / xp.sqrt(xp.sum((centered * centered + eps) * part, axis=-1))


@fused
def normalize(
    xp: Any,
    x: Array,
    h: Array | None,
    kept: Array | None,
    factor: float | None,
    mean: Array,
    rstd: Array,
    gain: Array,
    bias: Array,
) -> tuple[Array, Array]:
    """Return (y, xhat), both of shape (N, D).

    Args:
        xp: The array module.
        x, h, kept: Arrays of shape (N, D). h is None if only x is normalized, kept is None without dropout.
        factor: The factor of dropout, or None.
        mean, rstd: The results of row_mean and row_rstd, of shape (N, 1).
        gain, bias: The scale and the shift of each number, of shape (D,).
    """
    xhat = (_added(x, h, kept, factor) - mean) * rstd
    return gain * xhat + bias, xhat


@fused
def row_gradient(xp: Any, dy: Array, gain: Array, xhat: Array | None, part: float) -> Array:
    """Return the mean of each row of dxhat = dy gain or, if xhat is given, of dxhat xhat, of shape (N,).

    Args:
        xp: The array module.
        dy: The gradient of y, of shape (N, D).
        gain: The scale of each number, of shape (D,).
        xhat: The normalized rows, of shape (N, D), or None.
        part: 1 / D.
    """
    dxhat = dy * gain
    return xp.sum((dxhat if xhat is None else dxhat * xhat) * part, axis=-1)


@fused
def sum_gradient(
    xp: Any,
    dy: Array,
    gain: Array,
    xhat: Array,
    rstd: Array,
    mean: Array,
    along: Array,
    kept: Array | None,
    factor: float | None,
) -> Any:
    """Return dx, or (dx, dh) with dropout, of shape (N, D).

    Args:
        xp: The array module.
        dy, xhat: The gradient of y, and the normalized rows, of shape (N, D).
        gain: The scale of each number, of shape (D,).
        rstd: One over the standard deviation of each row, of shape (N, 1).
        mean, along: The results of row_gradient without and with xhat, of shape (N, 1).
        kept, factor: The dropout mask, of shape (N, D), and its factor, or None.
    """
    dx = rstd * (dy * gain - mean - xhat * along)
    return dx if kept is None else (dx, dx * kept * factor)


def layer_norm(x: Array, gain: Array, bias: Array, eps: float = 1e-5) -> tuple[Array, LayerNormCache]:
    """Compute y = gain xhat + bias, as npformer.functional.layer_norm does.

    Args:
        x: The input, of shape (..., D).
        gain, bias: The scale and the shift of each number, of shape (D,).
        eps: A small number that prevents a division by zero.

    Returns:
        y, of the shape of x, and the cache.
    """
    return _normalized(x, None, None, gain, bias, eps)


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
    y, norm = _normalized(x, h, dropout_mask, gain, bias, eps)
    return y, AddNormCache(dropout_mask, norm)


@backward_of(AddNormCache)
def add_norm_backward(dy: Array, cache: AddNormCache) -> tuple[Array, Array, Array, Array]:
    """Return the gradients dx (..., D), dh (..., D), dgain (D,) and dbias (D,)."""
    return _backward(dy, cache.norm, cache.dropout_mask)


def _normalized(
    x: Array, h: Array | None, dropout_mask: DropoutMask | None, gain: Array, bias: Array, eps: float
) -> tuple[Array, LayerNormCache]:
    """Normalize x + dropout(h), or x if h is None. Return (y, cache)."""
    part = 1 / x.shape[-1]
    terms = (as_rows(x), None if h is None else as_rows(h), *_kept_rows(dropout_mask))  # of the sum
    mean = row_mean(*terms, part)[:, None]  # (N, 1)
    rstd = row_rstd(*terms, mean, part, eps)[:, None]  # (N, 1)
    y, xhat = normalize(*terms, mean, rstd, gain, bias)  # (N, D)
    cache = LayerNormCache(xhat.reshape(x.shape), rstd.reshape(*x.shape[:-1], 1), gain)
    return y.reshape(x.shape), cache


def _backward(
    dy: Array, cache: PlainLayerNormCache, dropout_mask: DropoutMask | None
) -> tuple[Array, Array, Array, Array]:
    """Return the gradients (dx, dh, dgain, dbias). dh is dx if nothing was dropped."""
    drows, xhat, rstd, gain = as_rows(dy), as_rows(cache.xhat), as_rows(cache.rstd), cache.gain
    part = 1 / dy.shape[-1]
    # y = gain xhat + bias
    dbias = column_sums(drows)  # (D,)
    dgain = column_sums(drows * xhat)  # (D,)
    # xhat = (x - mean) rstd: as in the plain pair, with dxhat = dy gain,
    # dx = rstd (dxhat - mean(dxhat) - xhat along), where along = mean(dxhat xhat)
    mean = row_gradient(drows, gain, None, part)[:, None]  # (N, 1)
    along = row_gradient(drows, gain, xhat, part)[:, None]  # (N, 1)
    # the input of the norm is x + dropout(h)
    grads = sum_gradient(drows, gain, xhat, rstd, mean, along, *_kept_rows(dropout_mask))
    dx, dh = (grads, grads) if dropout_mask is None else grads
    return dx.reshape(dy.shape), dh.reshape(dy.shape), dgain, dbias


def _kept_rows(dropout_mask: DropoutMask | None) -> tuple[Any, Any]:
    """Return the dropout mask as rows and its factor, or (None, None) if nothing was dropped."""
    return (None, None) if dropout_mask is None else (as_rows(dropout_mask.kept), dropout_mask.factor)
