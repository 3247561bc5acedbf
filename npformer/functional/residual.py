"""Two short sequences of pairs that every layer runs through, each with its backward pass.

They are one pair each because a kernel makes them in one pass over the numbers.
"""

from typing import Any, NamedTuple

from npformer.functional.activations import relu, relu_backward
from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.norm import LayerNormCache, layer_norm, layer_norm_backward


class ResidualNormCache(NamedTuple):
    """What residual_norm_backward needs."""

    keep: Any  # (..., D) dropout's factors, or None
    norm: LayerNormCache


def residual_norm(x, h, gain, bias, eps=1e-5, rate=0.0, rng=None):
    """y = norm(x + dropout(h)): what went round a sublayer and what it made, added and normalized.

    Shapes: x and h (..., D), gain and bias (D,) -> y (..., D).
    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """
    h, keep = dropout(h, rate, rng)
    y, norm = layer_norm(x + h, gain, bias, eps)
    return y, ResidualNormCache(keep, norm)


def residual_norm_backward(dy, cache):
    """Gradients (dx, dh, dgain, dbias) of y = norm(x + dropout(h))."""
    dx, dgain, dbias = layer_norm_backward(dy, cache.norm)
    # a sum hands its gradient to both
    return dx, dropout_backward(dx, cache.keep), dgain, dbias


class ReluDropoutCache(NamedTuple):
    """What relu_dropout_backward needs."""

    y: Any  # (..., F) what the ReLU made
    keep: Any  # (..., F) dropout's factors, or None


def relu_dropout(x, rate=0.0, rng=None):
    """y = dropout(max(0, x)), the middle of the feed-forward network.

    Shapes: x (..., F) -> y (..., F). Source: Vaswani et al. 2017, section 3.3.
    """
    h, passed = relu(x)
    y, keep = dropout(h, rate, rng)
    return y, ReluDropoutCache(passed, keep)


def relu_dropout_backward(dy, cache):
    """dx = dy keep where max(0, x) > 0, else 0."""
    dh = dropout_backward(dy, cache.keep)
    return relu_backward(dh, cache.y)
