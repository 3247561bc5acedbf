"""The decoder layers of a Transformer with their weights prepared for decoding, for FastState.

Their results are those of the layers in npformer.models.transformer. They store nothing for a backward pass
or for figures, and they do not check the shapes of their inputs.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.kernels import activation_dropout
from npformer.kernels.cpu.attention import softmax_in_place
from npformer.kernels.cpu.blocks import row_sums
from npformer.models.bart import Bart
from npformer.models.transformer import DecoderLayer, PreNormDecoderLayer, Transformer
from npformer.nn import AddNorm, FeedForward, LayerNorm
from npformer.nn.attention import MultiHeadAttention


class LinearMap(NamedTuple):
    """The product y = x weight + bias of one or several linear layers. Shapes: x (R, I) -> y (R, O)."""

    weight: Array  # (I, O)
    bias: Array | None  # (O,)

    @classmethod
    def joined(cls, layers: list[Any]) -> "LinearMap":
        """Return one map whose output contains the outputs of all layers, side by side."""
        if len(layers) == 1:
            return cls(layers[0].weight.value, None if layers[0].bias is None else layers[0].bias.value)
        weight = np.concatenate([layer.weight.value for layer in layers], 1)
        if layers[0].bias is None:
            return cls(weight, None)
        return cls(weight, np.concatenate([layer.bias.value for layer in layers]))

    def __call__(self, x: Array) -> Array:
        y: Array = x @ self.weight
        if self.bias is not None:
            y += self.bias
        return y


class Norm(NamedTuple):
    """A layer norm, y = gain xhat + bias. Shapes: x (R, D) -> y (R, D)."""

    gain: Array  # (D,)
    bias: Array | None  # (D,)
    eps: float

    @classmethod
    def of(cls, norm: Any) -> "Norm":
        """Return the norm of a LayerNorm, or of an AddNorm without its sum."""
        return cls(norm.gain.value, None if norm.bias is None else norm.bias.value, norm.eps)

    def __call__(self, x: Array) -> Array:
        width = x.shape[1]
        y: Array = x - (row_sums(x) / width)[:, None]
        y *= (1 / np.sqrt(np.vecdot(y, y) / width + self.eps))[:, None]
        y *= self.gain
        if self.bias is not None:
            y += self.bias
        return y


class Heads(NamedTuple):
    """The settings of multi-head attention, and its product after the heads."""

    n_heads: int
    width: int  # H·K, the width of the queries and of the keys
    scale: float
    output: LinearMap

    @classmethod
    def of(cls, attention: MultiHeadAttention) -> "Heads":
        """Return the settings of a layer."""
        scale = 1 / math.sqrt(attention.d_head) if attention.scale is None else attention.scale
        width = attention.n_heads * attention.d_head
        return cls(attention.n_heads, width, scale, LinearMap.joined([attention.output]))

    def split(self, x: Array) -> Array:
        """Return a view with an axis of heads. Shapes: x (B, T, H·K) -> (B, H, T, K)."""
        return x.reshape(*x.shape[:2], self.n_heads, -1).swapaxes(1, 2)

    def attend(self, q: Array, k: Array, v: Array, allowed: Array | None = None) -> Array:
        """Return softmax(q kᵀ scale) v of each head, with the heads side by side.

        Args:
            q: The queries, of shape (B, T, H·K).
            k: The keys, of shape (B, H, S, K).
            v: The values, of shape (B, H, S, L).
            allowed: Bool, of shape (B, 1, 1, S). None allows all keys.

        Returns:
            z, of shape (B, T, H·L).
        """
        scores = self.split(q) @ k.swapaxes(-1, -2)  # (B, H, T, S)
        scores *= self.scale
        softmax_in_place(scores, allowed)
        z = (scores @ v).swapaxes(1, 2)  # (B, T, H, L)
        return z.reshape(*z.shape[:2], -1)


class FastLayer:
    """A decoder layer with the weights as a step needs them.

    Args:
        layer: The decoder layer, a DecoderLayer or a PreNormDecoderLayer (see suits).
    """

    def __init__(self, layer: Any) -> None:
        projections = layer.self_attention.projections
        self.query_key_value = LinearMap.joined(projections)
        self.self_heads, self.cross_heads = Heads.of(layer.self_attention), Heads.of(layer.cross)
        self.rotary = layer.self_attention.rotary
        self.query = LinearMap.joined([layer.cross.query])
        self.inner = LinearMap.joined([layer.feed_forward.inner])
        self.outer = LinearMap.joined([layer.feed_forward.outer])
        self.activation = layer.feed_forward.activation
        self.norms = [Norm.of(norm) for norm in (layer.norm1, layer.norm2, layer.norm3)]
        self.norm_first = isinstance(layer, PreNormDecoderLayer)

    def project(self, x: Array, position: int) -> Array:
        """Return the query, key and value of a position, side by side, with rotary positions if there are.

        Args:
            x: The vectors of the position, of shape (R, D).
            position: The position, from 0.

        Returns:
            y, of shape (R, H·K + W), for the width W of a key and a value.
        """
        y = self.query_key_value(x)
        if self.rotary is not None:
            rotated = y[:, : 2 * self.self_heads.width]  # (R, 2·H·K), a view of the query and the key
            heads = rotated.reshape(len(y), -1, 1, self.rotary.d_head)  # (R, 2·H, 1, K)
            rotated[...] = self.rotary(heads, position).reshape(rotated.shape)
        return y

    def feed_forward(self, x: Array) -> Array:
        """Return the output of the feed-forward network. Shapes: x (R, D) -> (R, D)."""
        h = self.inner(x)  # (R, F)
        if self.activation == "relu":
            np.maximum(h, 0, out=h)
        else:
            h, _ = activation_dropout(h, self.activation)
        return self.outer(h)

    def decode_step(self, x: Array, attend: Any, attend_memory: Any) -> Array:
        """Compute the three sublayers, each with its norm and its residual connection.

        Args:
            x: The vectors of the position, of shape (R, D).
            attend, attend_memory: The two attention sublayers as functions (R, D) -> (R, D).

        Returns:
            y, of shape (R, D).
        """
        for norm, sublayer in zip(self.norms, (attend, attend_memory, self.feed_forward), strict=True):
            x = x + sublayer(norm(x)) if self.norm_first else norm(x + sublayer(x))
        return x


def suits(model: Any) -> bool:
    """Return True if FastState can decode with a model: a Transformer on the host, with usual sublayers."""
    if type(model) not in (Transformer, Bart) or type(model.values) is not np.ndarray:
        return False
    return model.values.dtype.char in "fd" and all(map(_suits_layer, model.decoder.layers))


def _suits_layer(layer: Any) -> bool:
    norm_class = {DecoderLayer: AddNorm, PreNormDecoderLayer: LayerNorm}.get(type(layer))
    if norm_class is None or type(layer.feed_forward) is not FeedForward:
        return False
    usual_norms = all(type(norm) is norm_class for norm in (layer.norm1, layer.norm2, layer.norm3))
    return usual_norms and all(map(_suits_attention, (layer.self_attention, layer.cross)))


def _suits_attention(attention: Any) -> bool:
    if type(attention) is not MultiHeadAttention:
        return False
    projections = attention.projections
    return (
        attention.output is not None
        and attention.n_heads == attention.n_kv_heads
        and all(projection.activation == "none" for projection in projections)
    )
