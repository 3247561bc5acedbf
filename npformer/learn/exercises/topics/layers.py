"""Chapters 8 and 9: residual connections, layer normalization, dropout, and the feed-forward network."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.learn.exercises.exercise import Functions, Gradients, Task, Values, exercises
from npformer.learn.exercises.sublayer import (
    PostNorm,
    PostNormCache,
    PreNorm,
    PreNormCache,
    post_norm,
    post_norm_backward,
    pre_norm,
    pre_norm_backward,
)
from npformer.learn.exercises.topics.tools import layer_trial, output, output_and_cache, pair_trial, pairs
from npformer.nn import Context, Dropout, FeedForward, Linear
from npformer.nn.feed_forward import FeedForwardCache

DROPPING = {"train": True, "rng": 5}


def _normed(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    x, gain, bias = rng.standard_normal((2, 3, 5)), rng.standard_normal(5), rng.standard_normal(5)
    far = 100 + 0.01 * rng.standard_normal((2, 5))
    return {
        "y": output(own.layer_norm(x, gain, bias)),
        "y of rows with a small variance": output(own.layer_norm(far, gain, bias)),
        "y with eps 0.5": output(own.layer_norm(x, gain, bias, 0.5)),
    }


class _Framed:
    """A residual connection around a linear map whose backward pass uses the learner's two functions."""

    def __init__(self, own: Functions, norm: Any, rng: np.random.Generator) -> None:
        self.own = own
        self.norm = norm
        self.layer = {"post": PostNorm, "pre": PreNorm}[norm](5, dropout=0.3, dtype=np.float64)
        self.sublayer = Linear(5, 5, rng=rng, dtype=np.float64)

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        for name, layer in (("layer", self.layer), ("sublayer", self.sublayer)):
            yield from ((f"{name}.{inner}", p) for inner, p in layer.named_parameters())

    def forward(self, x: Array, context: Context) -> tuple[Any, Any]:
        forward: Any = {"post": post_norm, "pre": pre_norm}[self.norm]
        return forward(self.layer, x, self.sublayer.forward, context)

    def backward(self, dy: Array, cache: Any) -> Any:
        backward = {"post": self.own.post_norm_backward, "pre": self.own.pre_norm_backward}[self.norm]
        return backward(self.layer, dy, cache, self.sublayer.backward)


def _framed_trial(norm: Any) -> Gradients:
    return Gradients(
        f"norm {norm}", lambda own, rng: (_Framed(own, norm, rng), rng.standard_normal((2, 3, 5))), DROPPING
    )


class _Dropping:
    """A dropout layer in training whose mask is the same in every call."""

    def __init__(self, p: float) -> None:
        self._dropout = Dropout(p)

    def forward(self, x: Array, context: Any = None) -> tuple[Array, Any]:
        return self._dropout.forward(x, Context(train=True, rng=np.random.default_rng(5)))

    def backward(self, dy: Array, cache: Any) -> Array:
        return self._dropout.backward(dy, cache)


def _residual(name: str, kind: Any, cache_class: Any, backward: Any) -> Values:
    """Return a trial of the output of a residual connection, and of the gradients that its cache gives."""

    def run(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
        layer = kind(5, dtype=np.float64)
        if kind is PreNorm:
            layer.dropout = _Dropping(0.3)
        for parameter in layer.parameters():
            parameter.value[...] = rng.standard_normal(5)
        sublayer = Linear(5, 5, rng=rng, dtype=np.float64)
        x, dy = rng.standard_normal((2, 3, 5)), rng.standard_normal((2, 3, 5))
        returned = getattr(own, name)(layer, x, sublayer.forward)
        y, cache = output_and_cache(name, returned, cache_class)
        # a y of another shape is reported first
        dx = backward(layer, dy, cache, sublayer.backward) if np.shape(y) == dy.shape else None
        return {
            f"y of {name}": y,
            f"dx of {name} with your cache": dx,
            f"the gain's gradient of {name} with your cache": np.array(layer.norm.gain.grad),
        }

    return Values("", run)


def _feed_forward_trial(activation: str) -> Values:
    """Return a trial of the output of feed_forward, and of the gradients that its cache gives."""

    def run(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
        layer = FeedForward(4, 7, activation=activation, rng=rng, dtype=np.float64)
        for parameter in layer.parameters():
            parameter.value[...] = rng.standard_normal(parameter.shape)
        x, dy = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 4))
        y, cache = output_and_cache("feed_forward", own.feed_forward(layer, x), FeedForwardCache)
        dx = layer.backward(dy, cache) if np.shape(y) == dy.shape else None  # another shape is reported first
        gradient = np.array(layer.outer.weight.grad)
        return {"y": y, "dx with your cache": dx, "the gradient of W2 with your cache": gradient}

    return Values(activation, run)


def _network(rng: np.random.Generator) -> Any:
    return FeedForward(4, 7, activation="gelu", dropout=0.3, rng=rng, dtype=np.float64)


def _dropout_trial() -> Gradients:
    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any]:
        return (F.dropout, own.dropout_backward), rng.standard_normal((4, 6))

    return Gradients("", make, {"p": 0.4, "rng": 3})


LAYERS = exercises(
    r'''
=== 8 layer-norm: layer normalization, forward
import numpy as np


def layer_norm(x, gain, bias, eps=1e-5):
    """Return y = gain · xhat + bias, where xhat = (x - mean) / sqrt(variance + eps) over the last axis.

    x           (..., D)
    gain, bias  (D,)
    The variance is the mean of (x - mean)²: the sum is divided by D and not by D - 1.
    Returns y (..., D).
    """
    # solution
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    xhat = (x - mean) / np.sqrt(variance + eps)
    return gain * xhat + bias
--- Compute the mean and then the variance of each row, with keepdims=True so that they broadcast.
--- centered = x - mean, and the variance is the mean of centered². eps is added under the root.
--- gain * centered / np.sqrt(variance + eps) + bias.

=== 8 layer-norm-backward: the backward pass of layer normalization
import numpy as np


def layer_norm_backward(dy, cache):
    """Return the gradients of y = gain · xhat + bias, where xhat = (x - mean) / sqrt(variance + eps).

    dy     the gradient of y, of shape (..., D)
    cache  .xhat (..., D), .rstd (..., 1) = 1 / sqrt(variance + eps), .gain (D,)
    Returns (dx, dgain, dbias), with shapes (..., D), (D,), (D,).
    """
    xhat, rstd, gain = cache
    # first dbias and dgain, which are sums over all rows
    # then dxhat, and from it dx: xhat depends on x directly, through the mean, and through the variance
    # solution
    rows = tuple(range(dy.ndim - 1))
    dgain = (dy * xhat).sum(rows)
    dbias = dy.sum(rows)
    dxhat = dy * gain
    along_mean = dxhat.mean(-1, keepdims=True)
    along_xhat = (dxhat * xhat).mean(-1, keepdims=True)
    dx = rstd * (dxhat - along_mean - xhat * along_xhat)
    return dx, dgain, dbias
--- dbias and dgain are sums over all axes except the last. dxhat = dy · gain.
--- If you add a number to all entries of a row of x, xhat does not change. If you multiply the row by a
    number, xhat hardly changes. So each row of dx has mean 0 and is nearly orthogonal to xhat. Two terms
    must therefore be subtracted from dxhat.
--- dx = rstd · (dxhat - mean(dxhat) - xhat · mean(dxhat · xhat)), with means over the last axis.

=== 8 residual: residual connections, forward
from npformer.learn.exercises.sublayer import PostNormCache, PreNormCache


def post_norm(layer, x, sublayer):
    """Compute y = norm(x + dropout(h)), where h = f(x) and f is the sublayer.

    layer     layer.norm.forward(x, h) computes norm(x + dropout(h)), and returns (y, its cache)
    x         (..., D)
    sublayer  sublayer(x) returns (h, its cache)
    Returns (y, cache), where the cache is PostNormCache(sublayer's cache, norm's cache).
    """
    # solution
    h, sublayer_cache = sublayer(x)
    y, add_norm = layer.norm.forward(x, h)
    return y, PostNormCache(sublayer_cache, add_norm)


def pre_norm(layer, x, sublayer):
    """Compute y = x + dropout(h), where h = f(norm(x)) and f is the sublayer.

    layer     layer.norm.forward(x) returns (normed, its cache).
              layer.dropout.forward(h) returns (dropped, dropout_mask).
    x         (..., D)
    sublayer  sublayer(normed) returns (h, its cache)
    Returns (y, cache), where the cache is PreNormCache(norm's cache, sublayer's cache, dropout_mask).
    """
    # solution
    normed, norm = layer.norm.forward(x)
    h, sublayer_cache = sublayer(normed)
    dropped, dropout_mask = layer.dropout.forward(h)
    return x + dropped, PreNormCache(norm, sublayer_cache, dropout_mask)
--- Each step returns a result and a cache. Keep the caches, and write the steps in the order of the formula.
--- Post-norm has two steps: the sublayer, and the norm, whose method adds x itself. Pre-norm has four: norm,
    sublayer, dropout, sum.
--- Pre-norm: the sublayer gets the normed x, and the sum has x itself: y = x + dropped.

=== 8 residual-backward: residual connections, post-norm and pre-norm

def post_norm_backward(layer, dy, cache, sublayer_backward):
    """Compute the backward pass of y = norm(x + dropout(h)), where h = f(x) and f is the sublayer.

    layer  layer.norm.backward(dy, cache.add_norm) is the backward pass of norm(x + dropout(h)). It adds the
           gradients of the norm's parameters and returns (dx, dh), the gradients of its two inputs.
    sublayer_backward  sublayer_backward(dh, cache.sublayer) returns the gradient of the sublayer's input
    Returns the complete gradient dx, through the residual connection and through the sublayer.
    """
    # solution
    dx, dh = layer.norm.backward(dy, cache.add_norm)
    dh = sublayer_backward(dh, cache.sublayer)
    return dx + dh


def pre_norm_backward(layer, dy, cache, sublayer_backward):
    """Compute the backward pass of y = x + dropout(h), where h = f(norm(x)) and f is the sublayer.

    layer  layer.dropout.backward(dy, cache.dropout_mask) returns the gradient of h.
           layer.norm.backward(dnormed, cache.norm) takes the gradient of the norm's output. It adds the
           gradients of the norm's parameters and returns the gradient of its input.
    sublayer_backward  sublayer_backward(dh, cache.sublayer) returns the gradient of the sublayer's input
    Returns the complete gradient dx, through the residual connection and through the sublayer.
    """
    # solution
    dropped = layer.dropout.backward(dy, cache.dropout_mask)
    dnormed = sublayer_backward(dropped, cache.sublayer)
    dnorm = layer.norm.backward(dnormed, cache.norm)
    return dy + dnorm
--- In the backward pass of a sum, both terms get the gradient of the sum, unchanged.
--- Post-norm: layer.norm.backward returns dx and dh. Pass dh to sublayer_backward, and add the result to dx.
--- Pre-norm: the residual connection contributes dy itself. Pass dy also through dropout, sublayer and norm,
    in this order, and add the result.

=== 8 dropout-backward: the backward pass of dropout

def dropout_backward(dy, cache):
    """Return the gradient of y = x · dropout_mask.

    dy     the gradient of y, of any shape
    cache  the dropout_mask, which is 0 where x was dropped and 1 / (1 - p) elsewhere, with the shape of x;
           or None if nothing was dropped
    Returns dx.
    """
    dropout_mask = cache
    # solution
    if dropout_mask is None:
        return dy
    return dy * dropout_mask
--- The dropout_mask is a constant here. It is random and does not depend on x.
--- Each entry of y is the entry of x times the entry of the mask. What is its derivative?
--- dx = dy * dropout_mask. If dropout_mask is None, dx is dy.

=== 9 relu-backward: the backward pass of max(0, x)
import numpy as np


def relu_backward(dy, cache):
    """Return the gradient of y = max(0, x), which is computed for each entry separately.

    dy     the gradient of y, of any shape
    cache  the output y
    Returns dx.
    """
    y = cache
    # solution
    return np.where(y > 0, dy, 0)
--- Where x is negative, y is 0, so its derivative is 0.
--- Where x is positive, y = x, so its derivative is 1. These are the entries with y > 0.
--- np.where(y > 0, ..., 0).

=== 9 gelu-backward: the backward pass of GELU
import math

import numpy as np


def gelu_backward(dy, cache):
    """Return the gradient of y = x Phi(x), where Phi is the distribution function of the normal distribution.

    dy     the gradient of y, of any shape
    cache  the pair (x, phi), where phi = Phi(x)
    Returns dx. The derivative of Phi is the density exp(-x²/2) / sqrt(2 pi).
    """
    x, phi = cache
    # solution
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return dy * (phi + x * density)
--- y is the product of x and Phi(x), so the product rule gives two terms.
--- The first term is phi. The second term is x times the density.
--- dx = dy · (phi + x · density).

=== 9 feed-forward: the feed-forward network, forward
from npformer.kernels import activation_dropout
from npformer.nn.feed_forward import FeedForwardCache


def feed_forward(layer, x):
    """Compute y = f(x W1 + b1) W2 + b2, where f is the activation.

    layer  .inner (W1, b1) and .outer (W2, b2). Each has a method forward(x), which returns (y, its cache).
           .activation, the name of f
    x      (B, T, D)
    activation_dropout(h, layer.activation) returns (f(h), its cache). Without further arguments, nothing is
    dropped.
    Returns (y, cache). The cache is FeedForwardCache(inner's, the activation's, outer's cache).
    """
    # solution
    h, inner = layer.inner.forward(x)
    h, hidden = activation_dropout(h, layer.activation)
    y, outer = layer.outer.forward(h)
    return y, FeedForwardCache(inner, hidden, outer)
--- There are three steps: the inner layer, the activation, the outer layer. Each returns a result and a
    cache.
--- h, inner = layer.inner.forward(x) is the first step. The second step gets h.
--- Collect the three caches in the order of the steps, and return them after y.

=== 9 feed-forward-backward: the backward pass of the feed-forward network
from npformer.kernels import activation_dropout_backward


def feed_forward_backward(layer, dy, cache):
    """Compute the backward pass of y = h W2 + b2, where h = dropout(gelu(x W1 + b1)).

    layer  .inner (W1, b1) and .outer (W2, b2). Each has a method backward(dy, cache), which returns dx and
           adds the gradients of its parameters.
    dy     the gradient of y, of shape (B, T, D)
    cache  .inner, .hidden and .outer
    activation_dropout_backward(dh, cache.hidden) is the backward pass of dropout(gelu(...)).
    Returns dx (B, T, D).
    """
    # solution
    dh = layer.outer.backward(dy, cache.outer)
    dh = activation_dropout_backward(dh, cache.hidden)
    return layer.inner.backward(dh, cache.inner)
--- The forward pass has three steps. Go through them in the opposite order.
--- The order is: layer.outer, activation_dropout_backward, layer.inner. Each takes the gradient that the
    previous one returned.
--- Begin with dh = layer.outer.backward(dy, cache.outer). The last step returns dx.
''',
    {
        "layer-norm": Task(F.layer_norm, Values("", _normed)),
        "layer-norm-backward": pairs(
            F.layer_norm, ("", (7, 5), (5,), (5,)), ("x (2, 3, 5)", (2, 3, 5), (5,), (5,))
        ),
        "residual": Task(
            (post_norm, pre_norm),
            _residual("post_norm", PostNorm, PostNormCache, post_norm_backward),
            _residual("pre_norm", PreNorm, PreNormCache, pre_norm_backward),
        ),
        "residual-backward": Task(
            (post_norm_backward, pre_norm_backward), _framed_trial("post"), _framed_trial("pre")
        ),
        "dropout-backward": Task(
            F.dropout_backward,
            _dropout_trial(),
            pair_trial("nothing dropped", F.dropout, "dropout_backward", (4, 6), p=0.0, rng=3),
        ),
        "relu-backward": pairs(F.relu, ("", (4, 6))),
        "gelu-backward": pairs(F.gelu, ("", (4, 6))),
        "feed-forward": Task(FeedForward.forward, _feed_forward_trial("relu"), _feed_forward_trial("gelu")),
        "feed-forward-backward": Task(
            FeedForward.backward, layer_trial("", _network, "feed_forward_backward", (2, 3, 4), **DROPPING)
        ),
    },
)
