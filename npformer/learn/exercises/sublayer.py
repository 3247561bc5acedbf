"""A sublayer f with its norm and its residual connection, in both orders: the functions of two exercises.

The layers of the package have these lines for each of their sublayers: models/transformer/layers.py has those
of post-norm, and models/transformer/pre_norm.py those of pre-norm. Here the sublayer is an argument.
"""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.nn import AddNorm, Context, Dropout, LayerNorm, Module
from npformer.nn.context import INFERENCE


@cache_class
class PostNormCache(NamedTuple):
    """The cache of post_norm."""

    sublayer: Any
    add_norm: Any


@cache_class
class PreNormCache(NamedTuple):
    """The cache of pre_norm."""

    norm: Any
    sublayer: Any
    dropout_mask: Any  # (..., D), or None


class PostNorm(Module):
    """The norm after the sum, with the dropout of the sublayer's output.

    Args:
        d_model: The width D.
        dropout: The dropout probability.
        dtype: The dtype of the parameters.
    """

    def __init__(self, d_model: int, *, dropout: float = 0.0, dtype: Any = np.float32) -> None:
        self.norm = AddNorm(d_model, dropout=dropout, dtype=dtype)


class PreNorm(Module):
    """The norm before the sublayer, and the dropout of its output. Arguments: as in PostNorm."""

    def __init__(self, d_model: int, *, dropout: float = 0.0, dtype: Any = np.float32) -> None:
        self.norm = LayerNorm(d_model, dtype=dtype)
        self.dropout: Any = Dropout(dropout)


def post_norm(
    layer: Any, x: Array, sublayer: Any, context: Context = INFERENCE
) -> tuple[Array, PostNormCache]:
    """Compute y = norm(x + dropout(h)), where h = f(x) and f is the sublayer.

    Args:
        layer: A PostNorm.
        x: The input, of shape (..., D).
        sublayer: The function f, x -> (h, cache of the sublayer).
        context: The settings of the forward pass.

    Returns:
        y, of shape (..., D), and the cache.
    """
    h, sublayer_cache = sublayer(x)
    y, add_norm = layer.norm.forward(x, h, context)
    return y, PostNormCache(sublayer_cache, add_norm)


def post_norm_backward(layer: Any, dy: Array, cache: PostNormCache, sublayer_backward: Any) -> Array:
    """Return dx, of shape (..., D).

    Args:
        layer: A PostNorm.
        dy: The gradient of y, of shape (..., D).
        cache: The cache of post_norm.
        sublayer_backward: The backward pass of the sublayer, (dh, cache of the sublayer) -> dx.
    """
    # y = norm(x + dropout(h))
    dx, dh = layer.norm.backward(dy, cache.add_norm)
    # h = sublayer(x): x was used here and in the sum, so its two gradients are added
    result: Array = dx + sublayer_backward(dh, cache.sublayer)
    return result


def pre_norm(layer: Any, x: Array, sublayer: Any, context: Context = INFERENCE) -> tuple[Array, PreNormCache]:
    """Compute y = x + dropout(h), where h = f(norm(x)) and f is the sublayer.

    Args:
        layer: A PreNorm.
        x: The input, of shape (..., D).
        sublayer: The function f, normed x -> (h, cache of the sublayer).
        context: The settings of the forward pass.

    Returns:
        y, of shape (..., D), and the cache.
    """
    h, norm = layer.norm.forward(x)
    h, sublayer_cache = sublayer(h)
    h, dropout_mask = layer.dropout.forward(h, context)
    return x + h, PreNormCache(norm, sublayer_cache, dropout_mask)


def pre_norm_backward(layer: Any, dy: Array, cache: PreNormCache, sublayer_backward: Any) -> Array:
    """Return dx, of shape (..., D).

    Args:
        layer: A PreNorm.
        dy: The gradient of y, of shape (..., D).
        cache: The cache of pre_norm.
        sublayer_backward: The backward pass of the sublayer, (dh, cache of the sublayer) -> dnormed.
    """
    # y = x + dropout(h): a sum passes its gradient to both terms
    dh = layer.dropout.backward(dy, cache.dropout_mask)
    # h = sublayer(norm(x))
    dh = sublayer_backward(dh, cache.sublayer)
    dx: Array = dy + layer.norm.backward(dh, cache.norm)
    return dx
