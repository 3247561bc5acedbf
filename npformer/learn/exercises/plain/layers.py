"""Chapters 8 and 9: plain solutions and mistakes."""

import math
from typing import Any

import numpy as np

from npformer.kernels import activation_dropout_backward
from npformer.learn.exercises.plain.registry import mistake, plain

BOTH_TERMS = " - along_mean - xhat * along_xhat"
DENSITY = "np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)"


@plain(
    "layer-norm",
    mistake(
        "the variance is divided by D - 1 instead of D: this is the sample variance",
        "x.var(-1, keepdims=True)",
        "x.var(-1, keepdims=True, ddof=1)",
    ),
    mistake(
        "eps is added outside the square root, and must be added to the variance under it",
        "np.sqrt(variance + eps)",
        "(np.sqrt(variance) + eps)",
    ),
    mistake("eps is left out", "variance + eps", "variance"),
    mistake(
        "mean and variance are computed along the wrong axis: over the batch (axis 0) instead of the "
        "last axis",
        "(-1, ",
        "(0, ",
    ),
    mistake(
        "the mean is computed along the wrong axis: over axis 0 instead of the last one",
        "x.mean(-1, ",
        "x.mean(0, ",
    ),
    mistake(
        "the variance is computed along the wrong axis: over axis 0 instead of the last one",
        "x.var(-1, ",
        "x.var(0, ",
    ),
    mistake(
        "mean and variance are those of all entries: each row needs its own", "(-1, keepdims=True)", "()"
    ),
    mistake("the square root is left out", "np.sqrt(variance + eps)", "(variance + eps)"),
    mistake("the mean is not subtracted from x", "(x - mean)", "x"),
    mistake("bias is left out", " + bias", ""),
    mistake("gain is left out", "gain * xhat", "xhat"),
    mistake(
        "the parentheses are wrong: the bias is multiplied by gain too",
        "gain * xhat + bias",
        "gain * (xhat + bias)",
    ),
    mistake(
        "the standard deviation takes the place of the variance, so there are two square roots",
        "x.var",
        "x.std",
    ),
    mistake(
        "the variance is the mean of x² instead of the mean of (x - mean)²",
        "x.var(-1, keepdims=True)",
        "(x**2).mean(-1, keepdims=True)",
    ),
    mistake(
        "the mean is not subtracted, as in RMS norm",
        "(x - mean)",
        "x",
        "x.var(-1, keepdims=True)",
        "(x**2).mean(-1, keepdims=True)",
    ),
    mistake(
        "the variance is a sum and must be a mean: it is not divided by D",
        "x.var(-1, keepdims=True)",
        "((x - mean) ** 2).sum(-1, keepdims=True)",
    ),
    mistake("it is multiplied by the standard deviation instead of divided", ") / np.sqrt(", ") * np.sqrt("),
    mistake("the argument eps is not used: its default, 1e-5, is used always", "+ eps", "+ 1e-5"),
)
def layer_norm(x: Any, gain: Any, bias: Any, eps: Any = 1e-5) -> Any:
    """Return the normalized vectors, multiplied by gain and shifted by bias."""
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    xhat = (x - mean) / np.sqrt(variance + eps)
    return gain * xhat + bias


@plain(
    "layer-norm-backward",
    mistake("the term through the mean is left out in dx", " - along_mean", ""),
    mistake("the term through the variance is left out in dx", " - xhat * along_xhat", ""),
    mistake("the terms through the mean and through the variance are left out in dx", BOTH_TERMS, ""),
    mistake(
        "the two means in dx are sums: they are not divided by D",
        "dxhat.mean",
        "dxhat.sum",
        "xhat).mean",
        "xhat).sum",
    ),
    mistake("the mean of dxhat is a sum: it is not divided by D", "dxhat.mean", "dxhat.sum"),
    mistake("the mean of dxhat · xhat is a sum: it is not divided by D", "xhat).mean", "xhat).sum"),
    mistake("gain is left out in dxhat", "dxhat = dy * gain", "dxhat = dy"),
    mistake("dy is divided by gain instead of multiplied", "dxhat = dy * gain", "dxhat = dy / gain"),
    mistake("the factor rstd is left out in dx", "rstd * (", "("),
    mistake("dx is divided by rstd instead of multiplied", "rstd * (", "1 / rstd * ("),
    mistake(
        "the factor xhat is left out in dgain, so that it equals dbias",
        "(dy * xhat).sum(rows)",
        "dy.sum(rows)",
    ),
    mistake("dgain is averaged over the rows instead of summed", "xhat).sum(rows)", "xhat).mean(rows)"),
    mistake("dbias is averaged over the rows instead of summed", "dy.sum(rows)", "dy.mean(rows)"),
    mistake("dgain and dbias are averaged over the rows instead of summed", ".sum(rows)", ".mean(rows)"),
    mistake(
        "dgain is computed from dxhat, which contains gain, and must be computed from dy",
        "(dy * xhat).sum(rows)",
        "(dxhat * xhat).sum(rows)",
        "dxhat = dy * gain",
        "pass",
        "rows = ",
        "dxhat = dy * gain; rows = ",
    ),
    mistake("the term through the variance has the wrong sign in dx", "- xhat *", "+ xhat *"),
    mistake("the term through the mean has the wrong sign in dx", "- along_mean", "+ along_mean"),
    mistake(
        "gain is left out in the mean of dxhat · xhat: it is computed from dy",
        "(dxhat * xhat).mean",
        "(dy * xhat).mean",
    ),
    mistake("gain is left out in the mean of dxhat: it is computed from dy", "dxhat.mean", "dy.mean"),
    mistake(
        "the mean of dxhat runs over the wrong axis: over axis 0 instead of the last one",
        "dxhat.mean(-1",
        "dxhat.mean(0",
    ),
    mistake(
        "the mean of dxhat · xhat runs over the wrong axis: over axis 0 instead of the last one",
        "xhat).mean(-1",
        "xhat).mean(0",
    ),
    mistake("both means run over the wrong axis: over axis 0 instead of the last one", "mean(-1", "mean(0"),
    mistake("the factor xhat is left out in the term through the variance", "- xhat * along", "- along"),
)
def layer_norm_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of layer normalization."""
    xhat, rstd, gain = cache
    rows = tuple(range(dy.ndim - 1))
    dgain = (dy * xhat).sum(rows)
    dbias = dy.sum(rows)
    dxhat = dy * gain
    along_mean = dxhat.mean(-1, keepdims=True)
    along_xhat = (dxhat * xhat).mean(-1, keepdims=True)
    dx = rstd * (dxhat - along_mean - xhat * along_xhat)
    return dx, dgain, dbias


@plain(
    "residual-backward",
    mistake(
        "post-norm: the gradient dx of the residual connection is left out", "return dx + dh", "return dh"
    ),
    mistake("post-norm: the gradient through the sublayer is left out", "return dx + dh", "return dx"),
    mistake(
        "post-norm: dy is used in place of dx, although the residual connection lies inside the norm",
        "return dx + dh",
        "return dy + dh",
    ),
    mistake(
        "post-norm: the sublayer gets dy instead of dh, so the norm is left out",
        "sublayer_backward(dh, cache.sublayer)",
        "sublayer_backward(dy, cache.sublayer)",
    ),
    mistake(
        "post-norm: the sublayer gets dx instead of dh, so dropout is left out",
        "sublayer_backward(dh, cache.sublayer)",
        "sublayer_backward(dx, cache.sublayer)",
    ),
    mistake("post-norm: dx is added twice", "return dx + dh", "return 2 * dx + dh"),
    mistake(
        "post-norm: the gradient through the sublayer is added twice", "return dx + dh", "return dx + 2 * dh"
    ),
)
def post_norm_backward(layer: Any, dy: Any, cache: Any, sublayer_backward: Any) -> Any:
    """Return the gradient of a sublayer whose sum with its input is normalized."""
    dx, dh = layer.norm.backward(dy, cache.add_norm)
    dh = sublayer_backward(dh, cache.sublayer)
    return dx + dh


@plain(
    "residual-backward",
    mistake(
        "pre-norm: the gradient dy of the residual connection is left out",
        "return dy + dnorm",
        "return dnorm",
    ),
    mistake("pre-norm: the gradient through the sublayer is left out", "return dy + dnorm", "return dy"),
    mistake(
        "pre-norm: the backward pass of dropout is left out",
        "layer.dropout.backward(dy, cache.dropout_mask)",
        "dy",
    ),
    mistake(
        "pre-norm: the backward pass of the norm is left out",
        "layer.norm.backward(dnormed, cache.norm)",
        "dnormed",
    ),
    mistake("pre-norm: dy is added twice", "return dy + dnorm", "return 2 * dy + dnorm"),
    mistake(
        "pre-norm: the gradient of dropout takes the place of dy: the residual connection passes dy "
        "unchanged",
        "return dy + dnorm",
        "return dropped + dnorm",
    ),
    mistake(
        "pre-norm: dropout comes after the sublayer: the backward pass goes through dropout first",
        "sublayer_backward(dropped, cache.sublayer)",
        "layer.dropout.backward(sublayer_backward(dy, cache.sublayer), cache.dropout_mask)",
    ),
)
def pre_norm_backward(layer: Any, dy: Any, cache: Any, sublayer_backward: Any) -> Any:
    """Return the gradient of a sublayer whose input is normalized."""
    dropped = layer.dropout.backward(dy, cache.dropout_mask)
    dnormed = sublayer_backward(dropped, cache.sublayer)
    dnorm = layer.norm.backward(dnormed, cache.norm)
    return dy + dnorm


@plain(
    "dropout-backward",
    mistake(
        "the factor 1 / (1 - p) is left out: the dropped entries are 0, but the others are not rescaled",
        "dy * dropout_mask",
        "dy * (dropout_mask > 0)",
    ),
    mistake("dropout_mask is left out", "return dy * dropout_mask", "return dy"),
    mistake(
        "the two cases are exchanged: the gradient of the dropped entries should be 0",
        "return dy * dropout_mask",
        "return np.where(dropout_mask > 0, 0, dy)",
    ),
    mistake(
        "the factor dropout_mask is applied twice", "dy * dropout_mask", "dy * dropout_mask * dropout_mask"
    ),
    mistake(
        "dy is divided by dropout_mask instead of multiplied, which gives infinity or NaN",
        "dy * dropout_mask",
        "dy / dropout_mask",
    ),
    mistake(
        "if dropout_mask is None, nothing was dropped: dx is dy then, and not 0",
        "return dy\n",
        "return 0 * dy\n",
    ),
)
def dropout_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of dropout."""
    dropout_mask = cache
    if dropout_mask is None:
        return dy
    return dy * dropout_mask


@plain(
    "relu-backward",
    mistake(
        "it is dy itself: the condition y > 0 is left out, or it is y >= 0, which is true for every entry",
        "np.where(y > 0, dy, 0)",
        "dy",
    ),
    mistake(
        "the factor dy is left out: it is only the derivative, 1 or 0",
        "np.where(y > 0, dy, 0)",
        "np.where(y > 0, 1.0, 0)",
    ),
    mistake("it is multiplied by y, and the derivative is 1 where y > 0", "np.where(y > 0, dy, 0)", "y * dy"),
    mistake(
        "it is y instead of dy where y > 0: dy is left out", "np.where(y > 0, dy, 0)", "np.where(y > 0, y, 0)"
    ),
    mistake("the comparison is reversed: the gradient passes where y > 0", "y > 0", "y <= 0"),
    mistake("the comparison is reversed: y is never negative, so no gradient passes", "y > 0", "y < 0"),
    mistake(
        "ReLU is applied to dy: the sign of dy does not count, only y",
        "np.where(y > 0, dy, 0)",
        "np.maximum(dy, 0)",
    ),
    mistake(
        "ReLU is applied to dy as well: the sign of dy does not count, only y",
        "np.where(y > 0, dy, 0)",
        "np.where(y > 0, np.maximum(dy, 0), 0)",
    ),
    mistake("the slope is 0.01 where y is 0, as in leaky ReLU: it should be 0", "dy, 0)", "dy, 0.01 * dy)"),
    mistake("the comparison is y > 1 instead of y > 0", "y > 0", "y > 1"),
)
def relu_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of max(0, x)."""
    y = cache
    return np.where(y > 0, dy, 0)


@plain(
    "gelu-backward",
    mistake(
        "the product rule has a second term, because Phi depends on x too: it is left out",
        "(phi + x * density)",
        "phi",
    ),
    mistake(
        "the product rule has two terms: the term phi is left out", "(phi + x * density)", "(x * density)"
    ),
    mistake("the factor x in front of the density is left out", "x * density", "density"),
    mistake("the divisor 2 of x² is left out in the exponent", " / 2)", ")"),
    mistake("the factor 2 is left out under the square root: sqrt(pi) is used", "2 * math.pi", "math.pi"),
    mistake("the square root of 2 pi is left out", "math.sqrt(2 * math.pi)", "(2 * math.pi)"),
    mistake("the density is multiplied by sqrt(2 pi) instead of divided", "/ math.sqrt", "* math.sqrt"),
    mistake("the density is not divided by sqrt(2 pi)", " / math.sqrt(2 * math.pi)", ""),
    mistake("the exponent of the density has the wrong sign", "-(x**2)", "(x**2)"),
    mistake("x is not squared in the exponent of the density", "x**2", "x"),
    mistake(
        "phi (1 - phi), the derivative of a sigmoid, is used instead of the density",
        DENSITY,
        "phi * (1 - phi)",
    ),
    mistake("the factor dy is left out: the chain rule multiplies by it", "dy * (", "("),
    mistake("the sign of the term with the density is wrong", "phi + x", "phi - x"),
)
def gelu_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of GELU."""
    x, phi = cache
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return dy * (phi + x * density)


@plain(
    "feed-forward-backward",
    mistake("activation_dropout_backward is left out", "activation_dropout_backward(dh, cache.hidden)", "dh"),
    mistake(
        "dy is added to dx: there is no residual connection in the feed-forward network itself",
        "return layer",
        "return dy + layer",
    ),
    mistake(
        "dy itself is returned, instead of what layer.inner.backward returns",
        "return layer.inner.backward(dh, cache.inner)",
        "layer.inner.backward(dh, cache.inner)\n    return dy",
    ),
    mistake(
        "layer.inner.backward is called twice, which adds the gradients of its parameters twice",
        "return layer",
        "layer.inner.backward(dh, cache.inner)\n    return layer",
    ),
    mistake(
        "layer.outer.backward is called twice, which adds the gradients of its parameters twice",
        "dh = layer",
        "layer.outer.backward(dy, cache.outer)\n    dh = layer",
    ),
    mistake(
        "activation_dropout_backward is applied twice",
        "dh = activation",
        "dh = activation_dropout_backward(dh, cache.hidden)\n    dh = activation",
    ),
)
def feed_forward_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradients of the feed-forward network."""
    dh = layer.outer.backward(dy, cache.outer)
    dh = activation_dropout_backward(dh, cache.hidden)
    return layer.inner.backward(dh, cache.inner)
