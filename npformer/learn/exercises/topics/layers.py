"""Lessons 8 and 9: residuals, layer norm, dropout, and the feed-forward network."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.exercises.topics.tools import layer_trial, output, pair_trial
from npformer.nn import Context, FeedForward, Linear, PostNormResidual, PreNormResidual

DROPPING = {"train": True, "rng": 5}


def _normed(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    x, gain, bias = rng.standard_normal((2, 3, 5)), rng.standard_normal(5), rng.standard_normal(5)
    far = 100 + 0.01 * rng.standard_normal((2, 5))
    return {
        "y": output(own.layer_norm(x, gain, bias)),
        "y of rows that hardly differ": output(own.layer_norm(far, gain, bias)),
        "y with eps 0.5": output(own.layer_norm(x, gain, bias, 0.5)),
    }


class _Framed:
    """A residual connection around a linear map whose backward pass uses the learner's two functions."""

    def __init__(self, own: Functions, norm: Any, rng: np.random.Generator) -> None:
        self.own = own
        kind: Any = {"post": PostNormResidual, "pre": PreNormResidual}[norm]
        self.norm, self.residual = norm, kind(5, dropout=0.3, dtype=np.float64)
        self.sublayer = Linear(5, 5, rng=rng, dtype=np.float64)

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        for name, layer in (("residual", self.residual), ("sublayer", self.sublayer)):
            yield from ((f"{name}.{inner}", p) for inner, p in layer.named_parameters())

    def forward(self, x: Array, context: Context) -> tuple[Any, Any]:
        return self.residual.forward(x, self.sublayer.forward, context)

    def backward(self, dy: Array, cache: Any) -> Any:
        backward = {"post": self.own.post_norm_backward, "pre": self.own.pre_norm_backward}[self.norm]
        return backward(self.residual, dy, cache, self.sublayer.backward)


def _framed_trial(norm: Any) -> Gradients:
    return Gradients(
        f"norm {norm}", lambda own, rng: (_Framed(own, norm, rng), rng.standard_normal((2, 3, 5))), DROPPING
    )


def _network(rng: np.random.Generator) -> Any:
    return FeedForward(4, 7, activation="gelu", dropout=0.3, rng=rng, dtype=np.float64)


def _dropout_trial() -> Gradients:
    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any]:
        return (F.dropout, own.dropout_backward), rng.standard_normal((4, 6))

    return Gradients("", make, {"p": 0.4, "rng": 3})


LAYERS = (
    Exercise(
        "layer-norm",
        8,
        "layer normalization, forward",
        '''
import numpy as np


def layer_norm(x, gain, bias, eps=1e-5):
    """y = gain · xhat + bias, with xhat = (x - mean) / sqrt(variance + eps) over the last axis.

    x (..., D), gain and bias (D,). The variance is the mean of the squares, over D and not D - 1.
    Returns y (..., D).
    """
''',
        (Values("", _normed),),
        (
            "Each row by itself: its mean, then its variance. keepdims=True lets them broadcast.",
            "centered = x - mean; variance = mean of centered²; eps goes under the root.",
            "gain * centered / np.sqrt(variance + eps) + bias.",
        ),
        {"layer_norm": F.layer_norm},
    ),
    Exercise(
        "layer-norm-backward",
        8,
        "the backward pass of layer normalization",
        '''
import numpy as np


def layer_norm_backward(dy, cache):
    """The gradients of y = gain · xhat + bias, with xhat = (x - mean) / sqrt(variance + eps).

    dy     the gradient of y, shape (..., D)
    cache  .xhat (..., D), .rstd (..., 1) = 1 / sqrt(variance + eps), .gain (D,)
    Returns (dx, dgain, dbias), with shapes (..., D), (D,), (D,).
    """
    xhat, rstd, gain = cache
    # dbias and dgain first: gain and bias reached every row
    # then dxhat, and from it dx: x_j moves xhat directly, through the mean, and through the variance
''',
        (
            pair_trial("", F.layer_norm, "layer_norm_backward", (7, 5), (5,), (5,)),
            pair_trial("x (2, 3, 5)", F.layer_norm, "layer_norm_backward", (2, 3, 5), (5,), (5,)),
        ),
        (
            "dbias and dgain are sums over all axes but the last. dxhat = dy · gain.",
            "Adding a number to a whole row of x changes nothing, nor (almost) does stretching the row. So "
            "dx has no mean along the row, and no part along xhat.",
            "dx = rstd · (dxhat - its mean - xhat · the mean of dxhat · xhat), means over the last axis.",
        ),
        {"layer_norm_backward": F.layer_norm_backward},
    ),
    Exercise(
        "residual-backward",
        8,
        "the way round a sublayer, norm before or after",
        '''

def post_norm_backward(layer, dy, cache, sublayer_backward):
    """The backward pass of y = norm(x + dropout(h)) with h = f(x), f being the sublayer.

    layer  layer.norm.backward(dy, cache.add_norm) goes back through norm, sum and dropout, adds the norm's
           own gradients, and returns (dx, dh): the gradient of the way round, and that of h
    sublayer_backward(dh, cache.sublayer) returns the gradient of what the sublayer read
    Returns dx, the whole gradient of x: both ways together.
    """


def pre_norm_backward(layer, dy, cache, sublayer_backward):
    """The backward pass of y = x + dropout(h) with h = f(norm(x)).

    layer  layer.norm.backward(dh, cache.norm) adds the norm's own gradients and returns the gradient of what
           it normalized; layer.dropout.backward(dy, cache.dropout_mask) returns that of h
    sublayer_backward(dh, cache.sublayer) returns the gradient of what the sublayer read
    Returns dx, the whole gradient of x: both ways together.
    """
''',
        (_framed_trial("post"), _framed_trial("pre")),
        (
            "A sum hands its gradient to both of its terms, unchanged.",
            "post: layer.norm.backward gives both gradients; dh goes through the sublayer; both add up.",
            "pre: dy goes round as it is, and back through dropout, sublayer and norm; both add up.",
        ),
        {
            "post_norm_backward": PostNormResidual.backward,
            "pre_norm_backward": PreNormResidual.backward,
        },
    ),
    Exercise(
        "dropout-backward",
        8,
        "the backward pass of dropout",
        '''

def dropout_backward(dy, cache):
    """The gradient of y = x · dropout_mask, which is 0 where x was dropped and 1 / (1 - p) elsewhere.

    cache  dropout_mask, with the shape of x, or None where nothing was dropped
    Returns dx.
    """
    dropout_mask = cache
''',
        (
            _dropout_trial(),
            pair_trial("nothing dropped", F.dropout, "dropout_backward", (4, 6), p=0.0, rng=3),
        ),
        (
            "dropout_mask is a constant here: it was drawn, and depends on nothing.",
            "y = x · dropout_mask, entry by entry, so dx is dy times ...",
            "dy * dropout_mask; and dy as it is where dropout_mask is None.",
        ),
        {"dropout_backward": F.dropout_backward},
    ),
    Exercise(
        "relu-backward",
        9,
        "the backward pass of max(0, x)",
        '''
import numpy as np


def relu_backward(dy, cache):
    """The gradient of y = max(0, x), entry by entry.

    cache  y itself
    Returns dx.
    """
    y = cache
''',
        (pair_trial("", F.relu, "relu_backward", (4, 6)),),
        (
            "Where x was negative, y is 0 whatever x does.",
            "Where it was positive, y moves as x does. The cache tells which: y > 0.",
            "np.where(y > 0, ..., 0).",
        ),
        {"relu_backward": F.relu_backward},
    ),
    Exercise(
        "gelu-backward",
        9,
        "the backward pass of GELU",
        '''
import math

import numpy as np


def gelu_backward(dy, cache):
    """The gradient of y = x Phi(x), with Phi the distribution function of the normal distribution.

    cache  the pair (x, phi), with phi = Phi(x)
    Returns dx. The derivative of Phi is the density exp(-x²/2) / sqrt(2 pi).
    """
    x, phi = cache
''',
        (pair_trial("", F.gelu, "gelu_backward", (4, 6)),),
        (
            "A product of x and Phi(x): two terms.",
            "The first term is phi, the second x times the density.",
            "dx = dy · (phi + x · density).",
        ),
        {"gelu_backward": F.gelu_backward},
    ),
    Exercise(
        "feed-forward-backward",
        9,
        "the backward pass of the feed-forward network",
        '''
from npformer.kernels import activation_dropout_backward


def feed_forward_backward(layer, dy, cache):
    """The backward pass of y = h W2 + b2 with h = dropout(gelu(x W1 + b1)).

    layer  .inner (W1, b1) and .outer (W2, b2): each has backward(dy, cache), which returns dx and adds its
           parameters' gradients
    cache  .inner, .hidden (for activation_dropout_backward), .outer
    activation_dropout_backward(dh, cache.hidden) is the backward pass of dropout(gelu(.)).
    Returns dx.
    """
''',
        (layer_trial("", _network, "feed_forward_backward", (2, 3, 4), **DROPPING),),
        (
            "Three steps forward, three steps backward, the last one first.",
            "outer, dropout with activation, inner: each takes the gradient from the one before.",
            "dh = layer.outer.backward(dy, cache.outer), and so on; the last one's result is dx.",
        ),
        {"feed_forward_backward": FeedForward.backward},
    ),
)
