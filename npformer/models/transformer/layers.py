"""Encoder and decoder layers: Vaswani et al. 2017, section 3.1."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.models.transformer.config import TransformerConfig
from npformer.nn import FeedForward, PostNormResidual, PreNormResidual, Residual, SequenceResidual
from npformer.nn.attention.kv_cache import KVCache
from npformer.nn.attention.multi_head import MultiHeadAttention
from npformer.nn.attention.relative import RelativeAttention
from npformer.nn.context import INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng
from npformer.nn.module import Module
from npformer.nn.residual import ResidualCache


@cache_class
class EncoderLayerCache(NamedTuple):
    """The cache of EncoderLayer."""

    self_residual: ResidualCache
    feed_forward_residual: ResidualCache

    @property
    def self_attention(self) -> Any:
        """The cache of self-attention, a MultiHeadCache."""
        return self.self_residual.sublayer

    @property
    def feed_forward(self) -> Any:
        """The cache of the feed-forward network."""
        return self.feed_forward_residual.sublayer


class EncoderLayer(Module):
    """An encoder layer: self-attention and a feed-forward network, each with a residual connection.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) -> y (B, S, D).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.self_residual = make_residual(config, dtype)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.feed_forward_residual = make_residual(config, dtype)

    @classmethod
    def from_parts(
        cls,
        self_attention: MultiHeadAttention,
        self_residual: Residual,
        feed_forward: FeedForward,
        feed_forward_residual: Residual,
    ) -> Self:
        """Return a layer that consists of these parts, which no configuration needs to describe.

        Args:
            self_attention, self_residual: Self-attention and its residual connection.
            feed_forward, feed_forward_residual: The feed-forward network and its residual connection.
        """
        layer = cls.__new__(cls)
        layer.self_attention, layer.self_residual = self_attention, self_residual
        layer.feed_forward, layer.feed_forward_residual = feed_forward, feed_forward_residual
        return layer

    def forward(
        self, x: Array, mask: Array | AttentionMask | None = None, context: Context = INFERENCE
    ) -> tuple[Array, Any]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, S, S), or an AttentionMask. True means that the query may
                attend to the key.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, S, D), and the cache.
        """

        def attend(h: Array) -> tuple[Array, Any]:
            return self.self_attention.forward(h, mask=mask, context=context)

        # every position attends to every position
        x, self_residual = self.self_residual.forward(x, attend, context)
        # the same network is applied to each position
        x, feed_forward_residual = self.feed_forward_residual.forward(
            x, lambda h: self.feed_forward.forward(h, context), context
        )
        return x, EncoderLayerCache(self_residual, feed_forward_residual)

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of shape (B, S, D)."""
        # the feed-forward network
        dx = self.feed_forward_residual.backward(dy, cache.feed_forward_residual, self.feed_forward.backward)
        # self-attention
        return self.self_residual.backward(dx, cache.self_residual, self.self_attention.backward)

    def decode_step(self, x: Array, kv_cache: KVCache | None) -> tuple[Array, Any]:
        """Compute the next position under a causal mask, without a cache for a backward pass.

        `kv_cache` contains the keys and values of the positions before. It is None at the first position.
        Shapes: x (B, 1, D) -> y (B, 1, D), and the new KV cache.
        """
        x, self_residual = self.self_residual.forward(
            x, lambda h: self.self_attention.decode_step(h, kv_cache)
        )
        x, _ = self.feed_forward_residual.forward(x, self.feed_forward.forward)
        return x, self_residual.sublayer  # decode_step returned the new KV cache in place of a cache


@cache_class
class DecoderLayerCache(NamedTuple):
    """The cache of DecoderLayer."""

    self_residual: ResidualCache
    cross_residual: ResidualCache
    feed_forward_residual: ResidualCache

    @property
    def self_attention(self) -> Any:
        """The cache of masked self-attention, a MultiHeadCache."""
        return self.self_residual.sublayer

    @property
    def cross(self) -> Any:
        """The cache of cross-attention, a MultiHeadCache."""
        return self.cross_residual.sublayer

    @property
    def feed_forward(self) -> Any:
        """The cache of the feed-forward network."""
        return self.feed_forward_residual.sublayer


class DecoderLayer(Module):
    """A decoder layer: masked self-attention, cross-attention and a feed-forward network.

    Cross-attention attends to the memory, which is the output of the encoder.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S) -> y (B, T, D).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.self_residual = make_residual(config, dtype)
        self.cross = make_attention(config, "kv", rng, dtype)
        self.cross_residual = make_residual(config, dtype)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.feed_forward_residual = make_residual(config, dtype)

    @classmethod
    def from_parts(
        cls,
        self_attention: MultiHeadAttention,
        self_residual: Residual,
        cross: MultiHeadAttention,
        cross_residual: Residual,
        feed_forward: FeedForward,
        feed_forward_residual: Residual,
    ) -> Self:
        """Return a layer that consists of these parts, which no configuration needs to describe.

        Args:
            self_attention, self_residual: Masked self-attention and its residual connection.
            cross, cross_residual: Cross-attention and its residual connection.
            feed_forward, feed_forward_residual: The feed-forward network and its residual connection.
        """
        layer = cls.__new__(cls)
        layer.self_attention, layer.self_residual = self_attention, self_residual
        layer.cross, layer.cross_residual = cross, cross_residual
        layer.feed_forward, layer.feed_forward_residual = feed_forward, feed_forward_residual
        return layer

    def forward(
        self,
        x: Array,
        memory: Array,
        mask: Array | AttentionMask | None = None,
        memory_mask: Array | AttentionMask | None = None,
        context: Context = INFERENCE,
    ) -> tuple[Array, Any]:
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

        def attend(h: Array) -> tuple[Array, Any]:
            return self.self_attention.forward(h, mask=mask, context=context)

        def attend_memory(h: Array) -> Any:
            return self.cross.forward(h, memory, mask=memory_mask, context=context)

        # every position attends to itself and to the positions before it
        x, self_residual = self.self_residual.forward(x, attend, context)
        # queries from the decoder, keys and values from the encoder
        x, cross_residual = self.cross_residual.forward(x, attend_memory, context)
        # the same network is applied to each position
        x, feed_forward_residual = self.feed_forward_residual.forward(
            x, lambda h: self.feed_forward.forward(h, context), context
        )
        return x, DecoderLayerCache(self_residual, cross_residual, feed_forward_residual)

    def backward(self, dy: Array, cache: Any) -> tuple[Array, Array]:
        """Return the gradients dx (B, T, D) and dmemory (B, S, D)."""
        # the feed-forward network
        dx = self.feed_forward_residual.backward(dy, cache.feed_forward_residual, self.feed_forward.backward)
        # cross-attention
        dx, dmemory = self.cross_residual.backward(dx, cache.cross_residual, self.cross.backward)
        # masked self-attention
        dx = self.self_residual.backward(dx, cache.self_residual, self.self_attention.backward)
        return dx, dmemory

    def project_memory(self, memory: Array) -> KVCache:
        """Return the keys and values of the memory (B, S, D), which are computed once for each sentence."""
        return self.cross.project_memory(memory)

    def decode_step(
        self,
        x: Array,
        kv_cache: KVCache | None,
        memory_kv: KVCache,
        memory_mask: Array | AttentionMask | None = None,
    ) -> tuple[Array, Any]:
        """Compute the next position, without a cache for a backward pass.

        Args:
            x: The vector of the position, of shape (B, 1, D).
            kv_cache: The keys and values of the positions before, or None at the first position.
            memory_kv: The keys and values of the memory, from project_memory.
            memory_mask: Bool, broadcastable to (B, H, 1, S), or an AttentionMask.

        Returns:
            y, of shape (B, 1, D), and the new KV cache.
        """

        def attend_memory(h: Array) -> Any:
            return self.cross.attend_memory(h, memory_kv, memory_mask), None

        x, self_residual = self.self_residual.forward(
            x, lambda h: self.self_attention.decode_step(h, kv_cache)
        )
        x, _ = self.cross_residual.forward(x, attend_memory)
        x, _ = self.feed_forward_residual.forward(x, self.feed_forward.forward)
        return x, self_residual.sublayer


def make_attention(
    config: TransformerConfig, fused: str, rng: np.random.Generator | None, dtype: Any
) -> MultiHeadAttention:
    """Return multi-head attention with the settings of a configuration.

    Args:
        config: The configuration.
        fused: The projections that are fused if config.fused_projections is True: "qkv" for self-attention,
            "kv" for cross-attention.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    kind: type[MultiHeadAttention] = MultiHeadAttention
    settings: dict[str, Any] = {}
    # cross-attention has no relative positions: there is no distance between the tokens of two sentences
    if config.positions == "relative" and fused == "qkv":
        kind, settings = RelativeAttention, {"max_distance": config.max_distance}
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
        masking=config.masking,
        rng=rng,
        dtype=dtype,
        **settings,
    )


def make_feed_forward(config: TransformerConfig, rng: np.random.Generator | None, dtype: Any) -> FeedForward:
    """Return the feed-forward network with the settings of a configuration.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    return FeedForward(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        dropout=config.feed_forward_dropout,
        rng=rng,
        dtype=dtype,
    )


def make_residual(config: TransformerConfig, dtype: Any) -> Residual:
    """Return the residual connection of a configuration."""
    settings = {"dropout": config.dropout, "eps": config.norm_eps, "dtype": dtype}
    if "-" in config.norm:
        return SequenceResidual(config.d_model, sequence=config.norm, **settings)
    kind = {"pre": PreNormResidual, "post": PostNormResidual}[config.norm]
    return kind(config.d_model, **settings)
