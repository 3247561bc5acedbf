"""Feed-forward networks: linear maps with an activation between them, applied to each position."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.caches import cache_class
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.functional.linear import LinearCache
from npformer.kernels import (
    activation_dropout,
    activation_dropout_backward,
    dropout,
    dropout_backward,
    swiglu,
    swiglu_backward,
)
from npformer.nn.checks import check_floats
from npformer.nn.context import INFERENCE, Context
from npformer.nn.init import default_rng
from npformer.nn.linear import Linear
from npformer.nn.module import Module
from npformer.validation import require_choice, require_counts

# the pair of each gated activation, by name, with the kernel where there is one
GATED_PAIRS = GATED_ACTIVATIONS | {"swiglu": (swiglu, swiglu_backward)}


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
        bias: Add the biases b1 and b2.
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
        bias: bool = True,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_choice("activation", activation, tuple(ACTIVATIONS))
        require_counts(d_model=d_model, d_ff=d_ff)
        rng = default_rng(rng)
        self.inner = Linear(d_model, d_ff, bias=bias, rng=rng, dtype=dtype)
        self.outer = Linear(d_ff, d_model, bias=bias, rng=rng, dtype=dtype)
        self.activation, self.dropout = activation, dropout

    def forward(self, x: Array, context: Context = INFERENCE) -> tuple[Array, FeedForwardCache]:
        """Return y, of shape (..., D), and the cache."""
        check_floats(x, (..., self.inner.weight.shape[0]), "FeedForward")
        h, inner_cache = self.inner.forward(x)  # (..., F)
        h, hidden_cache = activation_dropout(h, self.activation, context.dropout(self.dropout), context.rng)
        y, outer_cache = self.outer.forward(h)  # (..., D)
        return y, FeedForwardCache(inner_cache, hidden_cache, outer_cache)

    def backward(self, dy: Array, cache: FeedForwardCache) -> Array:
        """Return dx, of shape (..., D)."""
        # y = outer(h)
        dh = self.outer.backward(dy, cache.outer)
        # h = dropout(f(inner(x)))
        dh = activation_dropout_backward(dh, cache.hidden)
        return self.inner.backward(dh, cache.inner)


@cache_class
class GatedFeedForwardCache(NamedTuple):
    """The cache of GatedFeedForward."""

    gate: LinearCache
    value: LinearCache
    gated: Any  # the cache of the gated activation
    dropout_mask: Any  # (..., F) the dropout mask, or None
    outer: LinearCache


class GatedFeedForward(Module):
    """The gated feed-forward network y = dropout(f(x Wg) (x Wv)) W2, which has three matrices instead of two.

    A FeedForward with 3/2 of its d_ff has the same number of weights.
    Shapes: x (..., D) -> y (..., D). Wg (gate) and Wv (value) are (D, F), and W2 (outer) is (F, D).

    Args:
        d_model: The width D of input and output.
        d_ff: The width F of the hidden layer.
        activation: The gated activation: "swiglu", where f is swish, "geglu", where f is gelu, or
            "geglu_tanh", where f is gelu_tanh.
        dropout: The dropout probability of the hidden layer.
        bias: Add a bias to each of the three linear maps.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If there is no such gated activation.

    Source: Shazeer 2020, equation 6.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "swiglu",
        dropout: float = 0.0,
        bias: bool = False,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_choice("activation", activation, tuple(GATED_ACTIVATIONS))
        require_counts(d_model=d_model, d_ff=d_ff)
        rng = default_rng(rng)
        self.gate = Linear(d_model, d_ff, bias=bias, rng=rng, dtype=dtype)
        self.value = Linear(d_model, d_ff, bias=bias, rng=rng, dtype=dtype)
        self.outer = Linear(d_ff, d_model, bias=bias, rng=rng, dtype=dtype)
        self.activation, self.dropout = activation, dropout

    def forward(self, x: Array, context: Context = INFERENCE) -> tuple[Array, GatedFeedForwardCache]:
        """Return y, of shape (..., D), and the cache."""
        check_floats(x, (..., self.gate.weight.shape[0]), "GatedFeedForward")
        activate, _ = GATED_PAIRS[self.activation]
        gate, gate_cache = self.gate.forward(x)  # (..., F)
        value, value_cache = self.value.forward(x)  # (..., F)
        h, gated_cache = activate(gate, value)  # (..., F)
        h, dropout_mask = dropout(h, context.dropout(self.dropout), context.rng)
        y, outer_cache = self.outer.forward(h)  # (..., D)
        return y, GatedFeedForwardCache(gate_cache, value_cache, gated_cache, dropout_mask, outer_cache)

    def backward(self, dy: Array, cache: GatedFeedForwardCache) -> Array:
        """Return dx, of shape (..., D)."""
        _, activate_backward = GATED_PAIRS[self.activation]
        # y = outer(h)
        dh = self.outer.backward(dy, cache.outer)  # (..., F)
        # h = dropout(f(gate) value)
        dh = dropout_backward(dh, cache.dropout_mask)
        dgate, dvalue = activate_backward(dh, cache.gated)  # (..., F)
        # gate and value were both computed from x, so its two gradients are added
        return self.gate.backward(dgate, cache.gate) + self.value.backward(dvalue, cache.value)
