"""The feed-forward network: two linear maps with an activation between them, applied to each position."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.linear import LinearCache
from npformer.kernels import activation_dropout, activation_dropout_backward
from npformer.nn.checks import check_floats
from npformer.nn.context import INFERENCE, Context
from npformer.nn.init import default_rng
from npformer.nn.linear import Linear
from npformer.nn.module import Module


@cache_class
class FeedForwardCache(NamedTuple):
    """The cache of FeedForward."""

    inner: LinearCache
    hidden: Any  # the cache of activation_dropout
    outer: LinearCache


class FeedForward(Module):
    """The feed-forward network y = dropout(f(x W1 + b1)) W2 + b2. In the paper f is the ReLU.

    Shapes: x (..., D) -> y (..., D). W1 (inner) is (D, F), and W2 (outer) is (F, D).

    Args:
        d_model: The width D of input and output.
        d_ff: The width F of the hidden layer.
        activation: The name of the activation f, one of ACTIVATIONS.
        dropout: The dropout probability of the hidden layer.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Vaswani et al. 2017, section 3.3.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        rng = default_rng(rng)
        self.inner = Linear(d_model, d_ff, rng=rng, dtype=dtype)
        self.outer = Linear(d_ff, d_model, rng=rng, dtype=dtype)
        self.activation, self.dropout = activation, dropout

    def forward(self, x: Array, context: Context = INFERENCE) -> tuple[Array, Any]:
        """Return y, of shape (..., D), and the cache."""
        check_floats(x, (..., self.inner.weight.shape[0]), "FeedForward")
        h, inner = self.inner.forward(x)  # (..., F)
        h, hidden = activation_dropout(h, self.activation, context.dropout(self.dropout), context.rng)
        y, outer = self.outer.forward(h)  # (..., D)
        return y, FeedForwardCache(inner, hidden, outer)

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of shape (..., D)."""
        dh = self.outer.backward(dy, cache.outer)
        dh = activation_dropout_backward(dh, cache.hidden)
        return self.inner.backward(dh, cache.inner)
