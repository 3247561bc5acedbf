"""Layer normalization, alone and with the residual before it: three kernels forward, five backward.

The sum x + dropout(h) is made anew in each kernel that needs it: two numbers and a byte read cost no more
than the sum would, and it need not be kept.
"""

from npformer.backend import fused
from npformer.functional.norm import LayerNormCache
from npformer.functional.residual import ResidualNormCache
from npformer.kernels.shared import as_rows, draw_kept


def _added(x, h, kept, factor):
    """Inside a kernel: x + dropout(h), or what of it there is."""
    if h is None:
        return x
    return x + h if kept is None else x + h * kept * factor


@fused
def row_mean(xp, x, h, kept, factor, part):
    """The mean of each row of x + dropout(h); part is 1 / D. Shapes: x (N, D) -> (N,)."""
    return xp.sum(_added(x, h, kept, factor) * part, axis=-1)


@fused
def row_rstd(xp, x, h, kept, factor, mean, part, eps):
    """1 / sqrt(variance + eps) of each row of x + dropout(h). Shapes: x (N, D), mean (N, 1) -> (N,)."""
    centered = _added(x, h, kept, factor) - mean
    # a sum's kernel takes no number after the sum: so eps enters before it, in the mean of centered² + eps
    return 1 / xp.sqrt(xp.sum((centered * centered + eps) * part, axis=-1))


@fused
def normalize(xp, x, h, kept, factor, mean, rstd, gain, bias):
    """Returns (y, xhat), both (N, D). Shapes: x (N, D), mean and rstd (N, 1), gain and bias (D,)."""
    xhat = (_added(x, h, kept, factor) - mean) * rstd
    return gain * xhat + bias, xhat


@fused
def row_gradient(xp, dy, gain, xhat, part):
    """The mean of dxhat = dy gain along each row, or of dxhat xhat. Shapes: dy (N, D) -> (N,)."""
    dxhat = dy * gain
    return xp.sum((dxhat if xhat is None else dxhat * xhat) * part, axis=-1)


@fused
def gain_gradient(xp, dy, xhat):
    """Shapes: dy and xhat (N, D) -> dgain (D,)."""
    return xp.sum(dy * xhat, axis=0)


@fused
def sum_gradient(xp, dy, gain, xhat, rstd, mean, along, kept, factor):
    """dx, and dh where something was dropped. Shapes: dy (N, D), rstd, mean and along (N, 1) -> (N, D)."""
    dx = rstd * (dy * gain - mean - xhat * along)
    return dx if kept is None else (dx, dx * kept * factor)


def layer_norm(x, gain, bias, eps=1e-5):
    """The plain pair's y = gain xhat + bias."""
    return _normalized(x, None, None, gain, bias, eps)


def layer_norm_backward(dy, cache):
    """Gradients (dx, dgain, dbias)."""
    dx, _, dgain, dbias = _backward(dy, cache, None)
    return dx, dgain, dbias


def residual_norm(x, h, gain, bias, eps=1e-5, rate=0.0, rng=None):
    """The plain pair's y = norm(x + dropout(h))."""
    keep = draw_kept(h, rate, rng)
    y, norm = _normalized(x, h, keep, gain, bias, eps)
    return y, ResidualNormCache(keep, norm)


def residual_norm_backward(dy, cache):
    """Gradients (dx, dh, dgain, dbias)."""
    return _backward(dy, cache.norm, cache.keep)


def _normalized(x, h, keep, gain, bias, eps):
    """The norm of x + dropout(h), or of x where h is None. Returns (y, cache)."""
    part = 1 / x.shape[-1]
    added = (as_rows(x), None if h is None else as_rows(h), *_kept_rows(keep))
    mean = row_mean(*added, part)[:, None]  # (N, 1)
    rstd = row_rstd(*added, mean, part, eps)[:, None]  # (N, 1)
    y, xhat = normalize(*added, mean, rstd, gain, bias)  # (N, D)
    cache = LayerNormCache(xhat.reshape(x.shape), rstd.reshape(*x.shape[:-1], 1), gain)
    return y.reshape(x.shape), cache


def _backward(dy, cache: LayerNormCache, keep):
    """Gradients (dx, dh, dgain, dbias); dh is dx, where nothing was dropped."""
    drows, xhat, rstd, gain = as_rows(dy), as_rows(cache.xhat), as_rows(cache.rstd), cache.gain
    part = 1 / dy.shape[-1]
    # y = gain xhat + bias
    dbias = drows.sum(0)  # (D,)
    dgain = gain_gradient(drows, xhat)
    # xhat = (x - mean) rstd: the gradient loses its mean and its part along xhat
    mean = row_gradient(drows, gain, None, part)[:, None]  # (N, 1)
    along = row_gradient(drows, gain, xhat, part)[:, None]  # (N, 1)
    # x = x + dropout(h)
    made = sum_gradient(drows, gain, xhat, rstd, mean, along, *_kept_rows(keep))
    dx, dh = (made, made) if keep is None else made
    return dx.reshape(dy.shape), dh.reshape(dy.shape), dgain, dbias


def _kept_rows(keep):
    """What dropout kept, as rows, and its factor; two times None where nothing was dropped."""
    return (None, None) if keep is None else (as_rows(keep.kept), keep.factor)
