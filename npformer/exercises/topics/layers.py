"""Lessons 8 and 9: residuals, layer norm, dropout, and the feed-forward network."""

import numpy as np

from npformer import functional as F
from npformer.exercises.exercise import Exercise, Gradients, Values
from npformer.exercises.topics.tools import layer_trial, output, pair_trial
from npformer.layers import FeedForward, Linear, Residual

DROPPING = {"train": True, "rng": 5}


def _normed(own, rng):
    x, gain, bias = rng.standard_normal((2, 3, 5)), rng.standard_normal(5), rng.standard_normal(5)
    far = 100 + 0.01 * rng.standard_normal((2, 5))
    return {
        "y": output(own.layer_norm(x, gain, bias)),
        "y of rows that hardly differ": output(own.layer_norm(far, gain, bias)),
        "y with eps 0.5": output(own.layer_norm(x, gain, bias, 0.5)),
    }


class _Framed:
    """A residual round a linear map, its backward by the learner's two functions."""

    def __init__(self, own, norm, rng):
        self.own = own
        self.residual = Residual(5, norm=norm, rate=0.3, dtype=np.float64)
        self.sublayer = Linear(5, 5, rng=rng, dtype=np.float64)

    def named_parameters(self):
        for name, layer in (("residual", self.residual), ("sublayer", self.sublayer)):
            yield from ((f"{name}.{inner}", p) for inner, p in layer.named_parameters())

    def forward(self, x, *, train=False, rng=None):
        h, entered = self.residual.enter(x)
        h, linear = self.sublayer.forward(h)
        y, cache = self.residual.join(x, h, entered, train=train, rng=rng)
        return y, (linear, cache)

    def backward(self, dy, cache):
        linear, cache = cache
        dx, dh = self.own.join_backward(self.residual, dy, cache)
        dh = self.sublayer.backward(dh, linear)
        return self.own.enter_backward(self.residual, dx, dh, cache)


def _framed_trial(norm):
    return Gradients(
        f"norm {norm}", lambda own, rng: (_Framed(own, norm, rng), rng.standard_normal((2, 3, 5))), DROPPING
    )


def _network(rng):
    return FeedForward(4, 7, activation="gelu", rate=0.3, rng=rng, dtype=np.float64)


def _dropout_trial():
    def make(own, rng):
        return (F.dropout, own.dropout_backward), rng.standard_normal((4, 6))

    return Gradients("", make, {"rate": 0.4, "rng": 3})


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

def join_backward(layer, dy, cache):
    """The backward pass of y = norm(x + dropout(h)), or y = x + dropout(h) where layer.pre is True.

    layer  .pre, .norm and .dropout; layer.norm.backward(dy, cache.norm) adds its own gradients and returns
           dx, layer.dropout.backward(dy, cache.keep) returns dx
    Returns (dx, dh): the gradient of the way round, and that of the sublayer's output h.
    """


def enter_backward(layer, dx, dh, cache):
    """The backward pass of h = norm(x) where layer.pre is True, h = x otherwise.

    dx     the gradient of x by the way round
    dh     the gradient of h, which the sublayer's backward returned
    cache  .entered for layer.norm.backward, where the norm stands before the sublayer
    Returns the whole gradient of x: both ways together.
    """
''',
        (_framed_trial("post"), _framed_trial("pre")),
        (
            "A sum hands its gradient to both of its terms, unchanged.",
            "join: back through the norm if it stands after the sum, then (dy, dropout's backward of dy).",
            "enter: back through the norm if it stands before the sublayer, then the two ways add up.",
        ),
        {"join_backward": Residual.join_backward, "enter_backward": Residual.enter_backward},
    ),
    Exercise(
        "dropout-backward",
        8,
        "the backward pass of dropout",
        '''

def dropout_backward(dy, cache):
    """The gradient of y = x · keep, where keep is 0 for what was dropped and 1 / (1 - rate) for the rest.

    cache  keep, with the shape of x, or None where nothing was dropped
    Returns dx.
    """
    keep = cache
''',
        (
            _dropout_trial(),
            pair_trial("nothing dropped", F.dropout, "dropout_backward", (4, 6), rate=0.0, rng=3),
        ),
        (
            "keep is a constant here: it was drawn, and depends on nothing.",
            "y = x · keep, entry by entry, so dx is dy times ...",
            "dy * keep; and dy as it is where keep is None.",
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
from npformer.functional import gelu_backward


def feed_forward_backward(layer, dy, cache):
    """The backward pass of y = dropout(gelu(x W1 + b1)) W2 + b2.

    layer  .inner (W1, b1), .dropout and .outer (W2, b2): each has backward(dy, cache), which returns dx and
           adds its parameters' gradients
    cache  .inner, .activation (for gelu_backward), .keep (for the dropout), .outer
    Returns dx.
    """
''',
        (layer_trial("", _network, "feed_forward_backward", (2, 3, 4), **DROPPING),),
        (
            "Four steps forward, four steps backward, the last one first.",
            "outer, dropout, activation, inner: each takes the gradient from the one before.",
            "dh = layer.outer.backward(dy, cache.outer), and so on; the last one's result is dx.",
        ),
        {"feed_forward_backward": FeedForward.backward},
    ),
)
