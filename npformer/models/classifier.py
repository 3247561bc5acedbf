"""ClassifierHead: the head of an encoder that chooses a class for a text or an image, or for each token.

    of a text:    logits = f(x_0 weight + bias) weight' + bias'     x_0 is the output at the first token
    of an image:  logits = x_0 weight' + bias'
    of a token:   logits = x_t weight' + bias'

The layer before the logits of a text is that which BERT calls the pooler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.functional.activations import relu, relu_backward, tanh, tanh_backward
from npformer.functional.caches import cache_class
from npformer.functional.linear import LinearCache
from npformer.nn import Linear
from npformer.nn.init import default_rng
from npformer.nn.module import Module
from npformer.validation import require_choice

CLASSIFIERS = ("text classes", "token classes")
HIDDEN = {"tanh": (tanh, tanh_backward), "relu": (relu, relu_backward)}  # the activations f


@cache_class
class ClassifierCache(NamedTuple):
    """The cache of ClassifierHead."""

    shape: tuple[int, ...]  # that of x
    dense: Any  # a LinearCache, or None without the layer before the logits, as the next one
    activation: Any
    output: LinearCache


class ClassifierHead(Module):
    """A classifier above an encoder.

    Shapes: x (B, T, D) -> logits (B, C) of the text or the image, or (B, T, C) of the tokens.

    Args:
        d_model: The width D of the encoder.
        n_classes: The number C of classes.
        hidden: The activation of the layer before the logits of a text, one of HIDDEN. None for no layer.
        first: Read the class from x_0. False makes a classifier of tokens, which has no hidden layer.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Devlin et al. 2019, sections 4.1 and 5.3, and figure 4.
    """

    def __init__(
        self,
        d_model: int,
        n_classes: int,
        *,
        hidden: str | None = None,
        first: bool = False,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        if hidden is not None:
            require_choice("hidden", hidden, tuple(HIDDEN))
        rng = default_rng(rng)
        self.hidden, self.first = hidden, first or hidden is not None
        self.dense = None if hidden is None else Linear(d_model, d_model, rng=rng, dtype=dtype)
        self.output = Linear(d_model, n_classes, rng=rng, dtype=dtype)

    def forward(self, x: Array) -> tuple[Array, ClassifierCache]:
        """Return the logits, of shape (B, C) or (B, T, C), and the cache."""
        h, dense_cache, activation_cache = x[:, 0] if self.first else x, None, None
        if self.dense is not None and self.hidden is not None:
            activation, _ = HIDDEN[self.hidden]
            h, dense_cache = self.dense.forward(h)  # (B, D)
            h, activation_cache = activation(h)
        logits, output_cache = self.output.forward(h)  # (B, C) or (B, T, C)
        return logits, ClassifierCache(x.shape, dense_cache, activation_cache, output_cache)

    def backward(self, dlogits: Array, cache: ClassifierCache) -> Array:
        """Return dx, of shape (B, T, D)."""
        dh = self.output.backward(dlogits, cache.output)  # (B, D) or (B, T, D)
        if self.dense is not None and self.hidden is not None:
            _, activation_backward = HIDDEN[self.hidden]
            dh = activation_backward(dh, cache.activation)
            dh = self.dense.backward(dh, cache.dense)
        if not self.first:
            return dh
        # h = x[:, 0]: the outputs at the other tokens have no gradient
        dx = array_module(dh).zeros(cache.shape, dh.dtype)
        dx[:, 0] = dh
        return dx
