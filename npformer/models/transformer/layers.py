"""Encoder and decoder layers as in the paper, with a layer norm after each sum.

Every sublayer f is followed by "add & norm": x = norm(x + dropout(f(x))). The layers with the norm before
each sublayer are in pre_norm.py, and those of tensor2tensor's sequences of letters in sequences.py.
Source: Vaswani et al. 2017, section 3.1 and figure 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.functional.residual import AddNormCache
from npformer.models.transformer.config import TransformerConfig
from npformer.nn import AddNorm, FeedForward, GatedFeedForward, RotaryPositions
from npformer.nn.attention.kv_cache import KVCache
from npformer.nn.attention.multi_head import MultiHeadAttention, MultiHeadCache
from npformer.nn.attention.relative import RelativeAttention
from npformer.nn.attention.tutorial import TutorialAttention
from npformer.nn.context import INFERENCE, AttentionMask, Context
from npformer.nn.feed_forward import FeedForwardCache
from npformer.nn.init import default_rng
from npformer.nn.module import Module

Layer = TypeVar("Layer", bound=Module)


@cache_class
class EncoderLayerCache(NamedTuple):
    """The cache of EncoderLayer, with one entry for each of its parts."""

    self_attention: MultiHeadCache
    norm1: AddNormCache
    feed_forward: FeedForwardCache
    norm2: AddNormCache


class EncoderLayer(Module):
    """An encoder layer: self-attention and a feed-forward network, each followed by "add & norm".

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) -> y (B, S, D).

    Args:
        config: The configuration, whose norm is "post".
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the configuration has another norm.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        require_norm(config, "post", type(self))
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.norm1 = make_add_norm(config, dtype)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.norm2 = make_add_norm(config, dtype)

    def forward(
        self, x: Array, mask: Array | AttentionMask | None = None, context: Context = INFERENCE
    ) -> tuple[Array, EncoderLayerCache]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, S, S), or an AttentionMask. True means that the query may
                attend to the key.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, S, D), and the cache.
        """
        # every position attends to every position
        h, self_attention_cache = self.self_attention.forward(x, mask=mask, context=context)
        x, norm1_cache = self.norm1.forward(x, h, context)  # norm(x + dropout(h))
        # the same network is applied to each position
        h, feed_forward_cache = self.feed_forward.forward(x, context)
        x, norm2_cache = self.norm2.forward(x, h, context)
        return x, EncoderLayerCache(self_attention_cache, norm1_cache, feed_forward_cache, norm2_cache)

    def backward(self, dy: Array, cache: EncoderLayerCache) -> Array:
        """Return dx, of shape (B, S, D)."""
        # y = norm2(x + dropout(h))
        dx, dh = self.norm2.backward(dy, cache.norm2)
        # h = feed_forward(x): x was used here and in the sum, so its two gradients are added
        dx = dx + self.feed_forward.backward(dh, cache.feed_forward)
        # x = norm1(x + dropout(h))
        dx, dh = self.norm1.backward(dx, cache.norm1)
        # h = self_attention(x)
        return dx + self.self_attention.backward(dh, cache.self_attention)


@cache_class
class DecoderLayerCache(NamedTuple):
    """The cache of DecoderLayer, with one entry for each of its parts."""

    self_attention: MultiHeadCache
    norm1: AddNormCache
    cross: MultiHeadCache
    norm2: AddNormCache
    feed_forward: FeedForwardCache
    norm3: AddNormCache


class DecoderLayer(Module):
    """A decoder layer: masked self-attention, cross-attention and a feed-forward network.

    Each is followed by "add & norm". Cross-attention attends to the memory, which is the output of the
    encoder.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S) -> y (B, T, D).

    Args:
        config: The configuration, whose norm is "post".
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the configuration has another norm.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        require_norm(config, "post", type(self))
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.norm1 = make_add_norm(config, dtype)
        self.cross = make_attention(config, "kv", rng, dtype)
        self.norm2 = make_add_norm(config, dtype)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.norm3 = make_add_norm(config, dtype)

    def forward(
        self,
        x: Array,
        memory: Array,
        mask: Array | AttentionMask | None = None,
        memory_mask: Array | AttentionMask | None = None,
        context: Context = INFERENCE,
    ) -> tuple[Array, DecoderLayerCache]:
        """Compute masked self-attention, cross-attention and the feed-forward network.

        Args:
            x: The vectors of the target tokens, of shape (B, T, D).
            memory: The output of the encoder, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, T, T), or an AttentionMask, for self-attention.
            memory_mask: Bool, broadcastable to (B, H, T, S), or an AttentionMask, for cross-attention.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        # every position attends to itself and to the positions before it
        h, self_attention_cache = self.self_attention.forward(x, mask=mask, context=context)
        x, norm1_cache = self.norm1.forward(x, h, context)  # norm(x + dropout(h))
        # queries from the decoder, keys and values from the encoder
        h, cross_cache = self.cross.forward(x, memory, mask=memory_mask, context=context)
        x, norm2_cache = self.norm2.forward(x, h, context)
        # the same network is applied to each position
        h, feed_forward_cache = self.feed_forward.forward(x, context)
        x, norm3_cache = self.norm3.forward(x, h, context)
        return x, DecoderLayerCache(
            self_attention_cache, norm1_cache, cross_cache, norm2_cache, feed_forward_cache, norm3_cache
        )

    def backward(self, dy: Array, cache: DecoderLayerCache) -> tuple[Array, Array]:
        """Return the gradients dx (B, T, D) and dmemory (B, S, D)."""
        # y = norm3(x + dropout(h))
        dx, dh = self.norm3.backward(dy, cache.norm3)
        # h = feed_forward(x): x was used here and in the sum, so its two gradients are added
        dx = dx + self.feed_forward.backward(dh, cache.feed_forward)
        # x = norm2(x + dropout(h))
        dx, dh = self.norm2.backward(dx, cache.norm2)
        # h = cross(x, memory)
        dh, dmemory = self.cross.backward(dh, cache.cross)
        dx = dx + dh
        # x = norm1(x + dropout(h))
        dx, dh = self.norm1.backward(dx, cache.norm1)
        # h = self_attention(x)
        return dx + self.self_attention.backward(dh, cache.self_attention), dmemory

    def project_memory(self, memory: Array) -> KVCache:
        """Return the keys and values of the memory (B, S, D), which are computed once for each sentence."""
        return self.cross.project_memory(memory)

    def decode_step(
        self,
        x: Array,
        kv_cache: KVCache | None,
        memory_kv: KVCache,
        memory_mask: Array | AttentionMask | None = None,
    ) -> tuple[Array, KVCache]:
        """Compute the next position, without a cache for a backward pass.

        Args:
            x: The vector of the position, of shape (B, 1, D).
            kv_cache: The keys and values of the positions before, or None at the first position.
            memory_kv: The keys and values of the memory, from project_memory.
            memory_mask: Bool, broadcastable to (B, H, 1, S), or an AttentionMask.

        Returns:
            y, of shape (B, 1, D), and the new KV cache.
        """
        h, kv_cache = self.self_attention.decode_step(x, kv_cache)
        x = self.norm1(x, h)
        x = self.norm2(x, self.cross.attend_memory(x, memory_kv, memory_mask))
        return self.norm3(x, self.feed_forward(x)), kv_cache


def make_attention(
    config: TransformerConfig,
    fused: str,
    rng: np.random.Generator | None,
    dtype: Any,
    kind: Callable[..., MultiHeadAttention] = MultiHeadAttention,
) -> MultiHeadAttention:
    """Return multi-head attention with the settings of a configuration.

    Args:
        config: The configuration.
        fused: The projections that are fused if config.fused_projections is True: "qkv" for self-attention,
            "kv" for cross-attention.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        kind: The class of the attention, or a function that makes one.
    """
    settings: dict[str, Any] = {}
    # cross-attention has neither relative nor rotary positions: there is no distance between the tokens of
    # two sentences
    if config.positions == "relative" and fused == "qkv":
        kind, settings = RelativeAttention, {"max_distance": config.max_distance}
    elif config.masking is not None:
        kind, settings = TutorialAttention, {"masking": config.masking}
    if config.positions == "rotary" and fused == "qkv":
        settings["rotary"] = RotaryPositions(config.max_length, config.head_key, dtype=dtype)
    return kind(
        config.d_model,
        config.n_heads,
        d_head=config.head_key,
        d_value=config.head_value,
        bias=config.attention_bias,
        output=config.attention_output,
        fused=fused if config.fused_projections else "no",
        activation=config.projection_activation,
        dropout=config.attention_dropout,
        scale=config.scale_scores,
        rng=rng,
        dtype=dtype,
        **settings,
    )


def make_feed_forward(
    config: TransformerConfig, rng: np.random.Generator | None, dtype: Any, *, bias: bool = True
) -> Any:
    """Return a FeedForward, or a GatedFeedForward if config.activation is gated.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        bias: Add biases.
    """
    kind = GatedFeedForward if config.activation in GATED_ACTIVATIONS else FeedForward
    return kind(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        dropout=config.feed_forward_dropout,
        bias=bias,
        rng=rng,
        dtype=dtype,
    )


def make_add_norm(config: TransformerConfig, dtype: Any) -> AddNorm:
    """Return "add & norm" with the settings of a configuration."""
    return AddNorm(config.d_model, dropout=config.dropout, eps=config.norm_eps, dtype=dtype)


def require_norm(config: TransformerConfig, norm: str, kind: type[Module]) -> None:
    """Check that a configuration asks for the norms that a class of layers has.

    Args:
        config: The configuration.
        norm: The value of config.norm for which the class is right.
        kind: The class, which the message names.

    Raises:
        UserError: If config.norm is another one.
    """
    if config.norm != norm:
        raise UserError(
            f"{kind.__name__} computes norm={norm!r}, and the configuration has norm={config.norm!r}: use "
            "make_encoder_layer or make_decoder_layer, which choose the class"
        )


def layer_from_parts(kind: type[Layer], **parts: Any) -> Layer:
    """Return a layer or a stack that consists of these parts, which no configuration needs to describe.

    Args:
        kind: The class of the layer, such as EncoderLayer.
        parts: The modules, by the names of its attributes and in the order of its constructor.
    """
    layer = kind.__new__(kind)
    for name, part in parts.items():
        setattr(layer, name, part)
    return layer
