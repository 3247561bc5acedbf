"""Chapters 8 and 9: plain solutions and mistakes."""

import math
from typing import Any

import numpy as np

from npformer.kernels import activation_dropout, activation_dropout_backward
from npformer.learn.exercises.plain.registry import mistake, plain
from npformer.learn.exercises.sublayer import PostNormCache, PreNormCache
from npformer.nn.feed_forward import FeedForwardCache

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
    mistake(
        "1 + gain is used instead of gain, as in models whose gain is stored as the difference from 1",
        "gain * xhat",
        "(1 + gain) * xhat",
    ),
    mistake("gain and bias are exchanged", "gain * xhat + bias", "bias * xhat + gain"),
    mistake(
        "the mean is subtracted after the division: first subtract it from x, then divide",
        "(x - mean) / np.sqrt(variance + eps)",
        "x / np.sqrt(variance + eps) - mean",
    ),
    mistake(
        "x is divided by its Euclidean length: subtract the mean, and divide by the standard deviation",
        "(x - mean) / np.sqrt(variance + eps)",
        "x / np.sqrt((x**2).sum(-1, keepdims=True) + eps)",
    ),
    mistake(
        "the mean of the absolute differences is used instead of the standard deviation",
        "np.sqrt(variance + eps)",
        "(np.abs(x - mean).mean(-1, keepdims=True) + eps)",
    ),
    mistake(
        "x is scaled to the range from 0 to 1: subtract the mean, and divide by the standard deviation",
        "(x - mean) / np.sqrt(variance + eps)",
        "(x - x.min(-1, keepdims=True)) / (x.max(-1, keepdims=True) - x.min(-1, keepdims=True) + eps)",
    ),
    mistake(
        "mean and variance are computed over the last two axes: each vector needs its own",
        "(-1, keepdims=True)",
        "((-2, -1), keepdims=True)",
    ),
    mistake(
        "eps is a lower limit of the variance: it must be added to the variance",
        "variance + eps",
        "np.maximum(variance, eps)",
    ),
    mistake("eps is subtracted from the variance: it must be added", "variance + eps", "variance - eps"),
    mistake("eps is squared", "variance + eps", "variance + eps**2"),
    mistake(
        "the bias is added before the division: it must be added at the end",
        "(x - mean) /",
        "(x - mean + bias) /",
        " + bias\n",
        "\n",
    ),
    mistake(
        "x is not divided by the standard deviation: only the mean is subtracted",
        " / np.sqrt(variance + eps)",
        "",
    ),
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
    mistake(
        "gain is a factor of the whole of dx, and belongs to dy before the two means are computed",
        "dxhat = dy * gain",
        "dxhat = dy",
        "rstd * (",
        "gain * rstd * (",
    ),
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
    mistake("the power of rstd is 3 instead of 1 in dx", "rstd * (", "rstd**3 * ("),
    mistake("the power of rstd is 2 instead of 1 in dx", "rstd * (", "rstd**2 * ("),
    mistake(
        "the two means in dx are divided by D - 1 instead of D",
        "dxhat.mean(-1, keepdims=True)",
        "dxhat.sum(-1, keepdims=True) / (dy.shape[-1] - 1)",
        "xhat).mean(-1, keepdims=True)",
        "xhat).sum(-1, keepdims=True) / (dy.shape[-1] - 1)",
    ),
    mistake(
        "the mean of dxhat · xhat is divided by D - 1 instead of D",
        "xhat).mean(-1, keepdims=True)",
        "xhat).sum(-1, keepdims=True) / (dy.shape[-1] - 1)",
    ),
    mistake(
        "rstd multiplies only dxhat: it belongs to all three terms of dx",
        "rstd * (dxhat - along_mean - xhat * along_xhat)",
        "rstd * dxhat - along_mean - xhat * along_xhat",
    ),
    mistake(
        "both means run over all entries: each row needs its own means",
        "dxhat.mean(-1, keepdims=True)",
        "dxhat.mean()",
        "xhat).mean(-1, keepdims=True)",
        "xhat).mean()",
    ),
    mistake("gain is applied twice in dx: dxhat contains it", "rstd * (", "gain * rstd * ("),
    mistake(
        "dbias is computed from dxhat, which contains gain, and must be computed from dy",
        "dbias = dy.sum(rows)",
        "dbias = (dy * gain).sum(rows)",
    ),
    mistake(
        "dgain and dbias are computed from dxhat, which contains gain, and must be computed from dy",
        "dgain = (dy * xhat).sum(rows)",
        "dgain = (dy * gain * xhat).sum(rows)",
        "dbias = dy.sum(rows)",
        "dbias = (dy * gain).sum(rows)",
    ),
    mistake(
        "x - mean is used instead of xhat in dgain: the division by the standard deviation is left out",
        "dgain = (dy * xhat)",
        "dgain = (dy * xhat / rstd)",
    ),
    mistake(
        "the mean in the term through the variance is that of dxhat: it must be that of dxhat · xhat",
        "(dxhat * xhat).mean",
        "dxhat.mean",
    ),
    mistake(
        "the term through the variance is counted twice: the 2 of the square is cancelled by the square root",
        "- xhat * along",
        "- 2 * xhat * along",
    ),
    mistake(
        "the term through the variance is halved: the 1/2 of the square root is cancelled by the square",
        "- xhat * along",
        "- 0.5 * xhat * along",
    ),
    mistake(
        "dy is added to dx: there is no residual connection in the norm itself",
        "dx = rstd",
        "dx = dy + rstd",
    ),
    mistake(
        "the term through the mean is left out, and gain is left out in the mean of dxhat · xhat",
        "rstd * (dxhat - along_mean - xhat * along_xhat)",
        "rstd * (dxhat - xhat * (dy * xhat).mean(-1, keepdims=True))",
    ),
    mistake(
        "the mean is subtracted from dy before it is multiplied by gain",
        "along_mean = dxhat.mean(-1, keepdims=True)",
        "along_mean = gain * dy.mean(-1, keepdims=True)",
    ),
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
    "residual",
    mistake("post-norm: the sublayer is left out", "norm.forward(x, h)", "norm.forward(x, 0 * h)"),
    mistake("post-norm: x is left out of the sum", "norm.forward(x, h)", "norm.forward(0 * x, h)"),
    mistake(
        "post-norm: x is added twice: layer.norm.forward(x, h) adds it",
        "norm.forward(x, h)",
        "norm.forward(x, x + h)",
    ),
    mistake("post-norm: h takes the place of x too", "norm.forward(x, h)", "norm.forward(h, h)"),
    mistake("post-norm: x is added again after the norm", "return y, Post", "return x + y, Post"),
    mistake("post-norm: y is multiplied by 2", "return y, Post", "return 2 * y, Post"),
    mistake(
        "post-norm: the norm comes before the sublayer",
        "sublayer(x)",
        "sublayer(layer.norm.forward(x, 0 * x)[0])",
    ),
    mistake(
        "post-norm: the output of the sublayer is returned without the norm",
        "return y, Post",
        "return x + h, Post",
    ),
)
def post_norm(layer: Any, x: Any, sublayer: Any) -> Any:
    """Return the normalized sum of x and a sublayer, and the cache."""
    h, sublayer_cache = sublayer(x)
    y, add_norm = layer.norm.forward(x, h)
    return y, PostNormCache(sublayer_cache, add_norm)


@plain(
    "residual",
    mistake("pre-norm: x is left out of the sum", "x + dropped", "dropped"),
    mistake("pre-norm: x is added twice", "x + dropped", "2 * x + dropped"),
    mistake("pre-norm: the normed x takes the place of x in the sum", "x + dropped", "normed + dropped"),
    mistake("pre-norm: the sublayer gets x instead of the normed x", "sublayer(normed)", "sublayer(x)"),
    mistake("pre-norm: dropout is left out", "x + dropped", "x + h"),
    mistake(
        "pre-norm: dropout is applied to the sum: x itself is never dropped",
        "x + dropped",
        "layer.dropout.forward(x + h)[0]",
    ),
    mistake(
        "pre-norm: dropout is applied to x instead of h", "x + dropped", "layer.dropout.forward(x)[0] + h"
    ),
    mistake(
        "pre-norm: the sum is normalized too, as in post-norm",
        "x + dropped",
        "layer.norm.forward(x + dropped)[0]",
    ),
    mistake("pre-norm: the sublayer is left out", "x + dropped", "x + layer.dropout.forward(normed)[0]"),
    mistake("pre-norm: the two terms are averaged instead of summed", "x + dropped", "(x + dropped) / 2"),
    mistake("pre-norm: the sublayer is subtracted instead of added", "x + dropped", "x - dropped"),
)
def pre_norm(layer: Any, x: Any, sublayer: Any) -> Any:
    """Return the sum of x and a sublayer of the normalized x, and the cache."""
    normed, norm = layer.norm.forward(x)
    h, sublayer_cache = sublayer(normed)
    dropped, dropout_mask = layer.dropout.forward(h)
    return x + dropped, PreNormCache(norm, sublayer_cache, dropout_mask)


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
    mistake(
        "post-norm: dy is added too: the residual connection lies inside the norm, and dx contains its "
        "gradient",
        "return dx + dh",
        "return dy + dx + dh",
    ),
    mistake(
        "post-norm: the sublayer gets dx + dh: it gets dh alone",
        "sublayer_backward(dh, cache.sublayer)",
        "sublayer_backward(dx + dh, cache.sublayer)",
    ),
    mistake("post-norm: dx and dh are averaged instead of summed", "return dx + dh", "return (dx + dh) / 2"),
    mistake(
        "post-norm: the gradient dh before the sublayer is added too: only what the sublayer returns "
        "belongs to "
        "the result",
        "    dh = sublayer_backward(dh, cache.sublayer)\n    return dx + dh",
        "    return dx + dh + sublayer_backward(dh, cache.sublayer)",
    ),
    mistake(
        "post-norm: the sublayer comes first: the backward pass begins with the norm, which came last",
        "layer.norm.backward(dy, cache.add_norm)\n    dh = sublayer_backward(dh, cache.sublayer)",
        "layer.norm.backward(sublayer_backward(dy, cache.sublayer), cache.add_norm)",
    ),
    mistake(
        "post-norm: layer.norm.backward is called twice, which adds the gradients of its parameters twice",
        "    dx, dh = layer",
        "    layer.norm.backward(dy, cache.add_norm)\n    dx, dh = layer",
    ),
    mistake(
        "post-norm: the sublayer is called twice, which adds the gradients of its parameters twice",
        "    dh = sublayer",
        "    sublayer_backward(dh, cache.sublayer)\n    dh = sublayer",
    ),
    mistake("post-norm: dx and dh are multiplied instead of summed", "return dx + dh", "return dx * dh"),
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
    mistake(
        "pre-norm: dy is added before the norm: the residual connection passes it around the norm",
        "    dnorm = layer.norm.backward(dnormed, cache.norm)\n    return dy + dnorm",
        "    return layer.norm.backward(dy + dnormed, cache.norm)",
    ),
    mistake(
        "pre-norm: dnormed is added too: only what the norm returns belongs to the result",
        "return dy + dnorm",
        "return dy + dnormed + dnorm",
    ),
    mistake(
        "pre-norm: the gradient of dropout is added too: only dy and what the norm returns belong to the "
        "result",
        "return dy + dnorm",
        "return dy + dropped + dnorm",
    ),
    mistake(
        "pre-norm: the two gradients are averaged instead of summed",
        "return dy + dnorm",
        "return (dy + dnorm) / 2",
    ),
    mistake(
        "pre-norm: the norm comes before the sublayer: in the backward pass the sublayer comes first",
        "    dnormed = sublayer_backward(dropped, cache.sublayer)\n    dnorm = "
        "layer.norm.backward(dnormed, cache.norm)",
        "    dnorm = sublayer_backward(layer.norm.backward(dropped, cache.norm), cache.sublayer)",
    ),
    mistake(
        "pre-norm: the sublayer is left out: the norm must get what sublayer_backward returns",
        "sublayer_backward(dropped, cache.sublayer)",
        "dropped",
    ),
    mistake(
        "pre-norm: layer.norm.backward is called twice, which adds the gradients of its parameters twice",
        "    dnorm = layer",
        "    layer.norm.backward(dnormed, cache.norm)\n    dnorm = layer",
    ),
    mistake(
        "pre-norm: the sublayer is called twice, which adds the gradients of its parameters twice",
        "    dnormed = sublayer",
        "    sublayer_backward(dropped, cache.sublayer)\n    dnormed = sublayer",
    ),
    mistake(
        "pre-norm: the backward pass of dropout is applied twice",
        "sublayer_backward(dropped",
        "sublayer_backward(layer.dropout.backward(dropped, cache.dropout_mask)",
    ),
    mistake(
        "pre-norm: dropout is applied to the result of the norm: it comes first in the backward pass",
        "sublayer_backward(dropped, cache.sublayer)",
        "sublayer_backward(dy, cache.sublayer)",
        "return dy + dnorm",
        "return dy + layer.dropout.backward(dnorm, cache.dropout_mask)",
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
    mistake(
        "1 - dropout_mask is used: the mask is 0 where x was dropped",
        "return dy * dropout_mask",
        "return dy * (1 - dropout_mask)",
    ),
    mistake(
        "only entries where the mask is 1 pass: at the entries that are not dropped it is 1 / (1 - p)",
        "return dy * dropout_mask",
        "return np.where(dropout_mask == 1, dy, 0)",
    ),
    mistake(
        "the mean of dropout_mask is used: each entry has its own factor",
        "return dy * dropout_mask",
        "return dy * dropout_mask.mean()",
    ),
    mistake(
        "the entries that are not dropped are selected, which gives a flat array: keep the shape, with 0 "
        "at the "
        "dropped entries",
        "return dy * dropout_mask",
        "return (dy * dropout_mask)[dropout_mask > 0]",
    ),
    mistake(
        "dropout_mask itself is returned: the factor dy is left out",
        "return dy * dropout_mask",
        "return dropout_mask + 0 * dy",
    ),
    mistake(
        "dropout_mask is added instead of multiplied",
        "return dy * dropout_mask",
        "return dy + dropout_mask",
    ),
    mistake(
        "the gradient is divided by the share of the entries that are not dropped: the mask contains "
        "this factor",
        "return dy * dropout_mask",
        "return dy * dropout_mask / (dropout_mask > 0).mean()",
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
    mistake(
        "this is the derivative of the sigmoid: that of ReLU is 1 where y > 0 and 0 elsewhere",
        "np.where(y > 0, dy, 0)",
        "dy * y * (1 - y)",
    ),
    mistake(
        "this is the derivative of tanh: that of ReLU is 1 where y > 0 and 0 elsewhere",
        "np.where(y > 0, dy, 0)",
        "dy * (1 - y**2)",
    ),
    mistake(
        "this is the derivative of softplus: that of ReLU is 1 where y > 0 and 0 elsewhere",
        "np.where(y > 0, dy, 0)",
        "dy * (1 - np.exp(-y))",
    ),
    mistake(
        "the gradients of the entries above 0 are selected, which gives a flat array: keep the shape, with 0 "
        "elsewhere",
        "np.where(y > 0, dy, 0)",
        "dy[y > 0]",
    ),
    mistake(
        "the sign of dy is changed where y is 0, as for the absolute value: the gradient is 0 there",
        "dy, 0)",
        "dy, -dy)",
    ),
    mistake("half of the gradient passes where y is 0: it should be 0", "dy, 0)", "dy, 0.5 * dy)"),
    mistake("the slope is 0.1 where y is 0, as in leaky ReLU: it should be 0", "dy, 0)", "dy, 0.1 * dy)"),
    mistake("the slope is 0.2 where y is 0, as in leaky ReLU: it should be 0", "dy, 0)", "dy, 0.2 * dy)"),
    mistake("the entries above the mean pass: the limit is 0", "y > 0", "y > y.mean()"),
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
    mistake(
        "this is the derivative of the approximation with tanh: phi and the exact density are needed",
        "    density = ",
        "    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)\n    density = ",
        "dy * (phi + x * density)",
        "dy * (0.5 * (1 + np.tanh(u)) + 0.5 * x * (1 - np.tanh(u) ** 2) * math.sqrt(2 / math.pi) "
        "* (1 + 3 * 0.044715 * x**2))",
    ),
    mistake(
        "this is the derivative of the approximation with tanh, but with phi: the exact density is needed",
        "    density = ",
        "    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)\n    density = ",
        "x * density",
        "0.5 * x * (1 - np.tanh(u) ** 2) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)",
    ),
    mistake(
        "this is the derivative of x · sigmoid(1.702 x), an approximation: phi and the exact density are "
        "needed",
        "    density = ",
        "    s = 1 / (1 + np.exp(-1.702 * x))\n    density = ",
        "dy * (phi + x * density)",
        "dy * (s + 1.702 * x * s * (1 - s))",
    ),
    mistake(
        "this is the derivative of swish, x · sigmoid(x)",
        "    density = ",
        "    s = 1 / (1 + np.exp(-x))\n    density = ",
        "dy * (phi + x * density)",
        "dy * (s + x * s * (1 - s))",
    ),
    mistake("the density is computed at phi instead of x", "-(x**2)", "-(phi**2)"),
    mistake(
        "pi stands outside the square root: 2 pi belongs under it",
        "math.sqrt(2 * math.pi)",
        "(math.sqrt(2) * math.pi)",
    ),
    mistake(
        "the parentheses are wrong: it is divided by sqrt(2) and multiplied by pi",
        "/ math.sqrt(2 * math.pi)",
        "/ math.sqrt(2) * math.pi",
    ),
    mistake(
        "dy multiplies only the term phi: it belongs to both terms",
        "dy * (phi + x * density)",
        "dy * phi + x * density",
    ),
    mistake(
        "dy multiplies only the term with the density: it belongs to both terms",
        "dy * (phi + x * density)",
        "phi + dy * x * density",
    ),
    mistake("x is squared in front of the density", "x * density", "x**2 * density"),
    mistake(
        "the derivative of the density, -x times it, is used: the density is the derivative of phi already",
        "x * density",
        "x * (-x * density)",
    ),
    mistake(
        "phi and the density are multiplied: the product rule adds two terms",
        "(phi + x * density)",
        "(phi * x * density)",
    ),
    mistake(
        "phi stands with x, and the density alone: the term phi has no factor x, and the density has it",
        "(phi + x * density)",
        "(x * phi + density)",
    ),
)
def gelu_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of GELU."""
    x, phi = cache
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return dy * (phi + x * density)


@plain(
    "feed-forward",
    mistake(
        "the activation is left out",
        "activation_dropout(h, layer.activation)",
        "h, activation_dropout(h, layer.activation)[1]",
    ),
    mistake(
        "the activation is always the ReLU: layer.activation is its name",
        "(h, layer.activation)",
        "(h)",
    ),
    mistake("x is added: the residual connection is not part of the network", "return y,", "return x + y,"),
    mistake(
        "the activation is applied to the output too",
        "return y,",
        "return activation_dropout(y, layer.activation)[0],",
    ),
    mistake(
        "the activation is applied twice",
        "outer.forward(h)",
        "outer.forward(activation_dropout(h, layer.activation)[0])",
    ),
    mistake(
        "the activation is applied to x too",
        "inner.forward(x)",
        "inner.forward(activation_dropout(x, layer.activation)[0])",
    ),
    mistake(
        "the bias b1 of the inner layer is left out",
        "h, hidden = activation_dropout(h,",
        "h, hidden = activation_dropout(h - layer.inner.bias.value,",
    ),
    mistake("the bias b2 of the outer layer is left out", "return y,", "return y - layer.outer.bias.value,"),
    mistake(
        "both biases are left out",
        "h, hidden = activation_dropout(h,",
        "h, hidden = activation_dropout(h - layer.inner.bias.value,",
        "return y,",
        "return y - layer.outer.bias.value,",
    ),
)
def feed_forward(layer: Any, x: Any) -> Any:
    """Return the output of the feed-forward network and its cache."""
    h, inner = layer.inner.forward(x)
    h, hidden = activation_dropout(h, layer.activation)
    y, outer = layer.outer.forward(h)
    return y, FeedForwardCache(inner, hidden, outer)


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
    mistake(
        "dh is computed from the weight without layer.outer.backward, so the parameters of layer.outer "
        "get no "
        "gradients",
        "layer.outer.backward(dy, cache.outer)",
        "dy @ layer.outer.weight.value.T",
    ),
    mistake(
        "dx is computed from the weight without layer.inner.backward, so the parameters of layer.inner "
        "get no "
        "gradients",
        "layer.inner.backward(dh, cache.inner)",
        "dh @ layer.inner.weight.value.T",
    ),
    mistake(
        "dx and dh are computed from the weights without the backward methods, so the parameters get no "
        "gradients",
        "layer.outer.backward(dy, cache.outer)",
        "dy @ layer.outer.weight.value.T",
        "layer.inner.backward(dh, cache.inner)",
        "dh @ layer.inner.weight.value.T",
    ),
    mistake(
        "dy is divided by the batch size: a gradient must not be averaged here",
        "layer.outer.backward(dy",
        "layer.outer.backward(dy / len(dy)",
    ),
    mistake(
        "dx and dy are averaged: there is no residual connection in the feed-forward network itself",
        "return layer.inner.backward(dh, cache.inner)",
        "return (dy + layer.inner.backward(dh, cache.inner)) / 2",
    ),
    mistake(
        "the sign of dx is wrong",
        "return layer",
        "return -layer",
    ),
)
def feed_forward_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradients of the feed-forward network."""
    dh = layer.outer.backward(dy, cache.outer)
    dh = activation_dropout_backward(dh, cache.hidden)
    return layer.inner.backward(dh, cache.inner)
