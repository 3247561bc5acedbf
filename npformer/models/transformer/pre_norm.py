"""Encoder and decoder layers with a layer norm before each sublayer: x = x + dropout(f(norm(x))).

This is the order of tensor2tensor and GPT-2. Nothing normalizes the last sum, so each stack ends with a norm
of its own (config.final_norm).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.norm import LayerNormCache
from npformer.models.transformer.config import TransformerConfig
from npformer.models.transformer.layers import make_attention, make_feed_forward, require_norm
from npformer.nn import Dropout, LayerNorm
from npformer.nn.attention.kv_cache import KVCache
from npformer.nn.attention.multi_head import MultiHeadCache
from npformer.nn.context import INFERENCE, AttentionMask, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.feed_forward import FeedForwardCache
from npformer.nn.init import default_rng
from npformer.nn.module import Module


@cache_class
class PreNormEncoderLayerCache(NamedTuple):
    """The cache of PreNormEncoderLayer, with one entry for each of its parts."""

    norm1: LayerNormCache
    self_attention: MultiHeadCache
    dropout1: DropoutCache
    norm2: LayerNormCache
    feed_forward: FeedForwardCache
    dropout2: DropoutCache


class PreNormEncoderLayer(Module):
    """An encoder layer that computes x = x + dropout(f(norm(x))) for each of its two sublayers.

    They are self-attention and a feed-forward network.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) -> y (B, S, D).

    Args:
        config: The configuration, whose norm is "pre".
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the configuration has another norm.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        require_norm(config, "pre", type(self))
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.norm1 = LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype)
        self.dropout1 = Dropout(config.dropout)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.norm2 = LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype)
        self.dropout2 = Dropout(config.dropout)

    def forward(
        self, x: Array, mask: Array | AttentionMask | None = None, context: Context = INFERENCE
    ) -> tuple[Array, PreNormEncoderLayerCache]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, S, S), or an AttentionMask. True means that the query may
                attend to the key.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, S, D), and the cache.
        """
        h, norm1_cache = self.norm1.forward(x)
        h, self_attention_cache = self.self_attention.forward(h, mask=mask, context=context)
        h, dropout1_cache = self.dropout1.forward(h, context)
        x = x + h  # the residual connection

        h, norm2_cache = self.norm2.forward(x)
        h, feed_forward_cache = self.feed_forward.forward(h, context)
        h, dropout2_cache = self.dropout2.forward(h, context)
        x = x + h
        return x, PreNormEncoderLayerCache(
            norm1_cache, self_attention_cache, dropout1_cache, norm2_cache, feed_forward_cache, dropout2_cache
        )

    def backward(self, dy: Array, cache: PreNormEncoderLayerCache) -> Array:
        """Return dx, of shape (B, S, D)."""
        # y = x + h: a sum passes its gradient to both terms
        dx = dy
        # h = dropout2(feed_forward(norm2(x)))
        dh = self.dropout2.backward(dx, cache.dropout2)
        dh = self.feed_forward.backward(dh, cache.feed_forward)
        dx = dx + self.norm2.backward(dh, cache.norm2)

        # x = x + h, h = dropout1(self_attention(norm1(x)))
        dh = self.dropout1.backward(dx, cache.dropout1)
        dh = self.self_attention.backward(dh, cache.self_attention)
        return dx + self.norm1.backward(dh, cache.norm1)


@cache_class
class PreNormDecoderLayerCache(NamedTuple):
    """The cache of PreNormDecoderLayer, with one entry for each of its parts."""

    norm1: LayerNormCache
    self_attention: MultiHeadCache
    dropout1: DropoutCache
    norm2: LayerNormCache
    cross: MultiHeadCache
    dropout2: DropoutCache
    norm3: LayerNormCache
    feed_forward: FeedForwardCache
    dropout3: DropoutCache


class PreNormDecoderLayer(Module):
    """A decoder layer that computes x = x + dropout(f(norm(x))) for each of its three sublayers.

    They are masked self-attention, cross-attention and a feed-forward network.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S) -> y (B, T, D).

    Args:
        config: The configuration, whose norm is "pre".
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the configuration has another norm.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        require_norm(config, "pre", type(self))
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.norm1 = LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype)
        self.dropout1 = Dropout(config.dropout)
        self.cross = make_attention(config, "kv", rng, dtype)
        self.norm2 = LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype)
        self.dropout2 = Dropout(config.dropout)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.norm3 = LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype)
        self.dropout3 = Dropout(config.dropout)

    def forward(
        self,
        x: Array,
        memory: Array,
        mask: Array | AttentionMask | None = None,
        memory_mask: Array | AttentionMask | None = None,
        context: Context = INFERENCE,
    ) -> tuple[Array, PreNormDecoderLayerCache]:
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
        h, norm1_cache = self.norm1.forward(x)
        h, self_attention_cache = self.self_attention.forward(h, mask=mask, context=context)
        h, dropout1_cache = self.dropout1.forward(h, context)
        x = x + h  # the residual connection

        h, norm2_cache = self.norm2.forward(x)
        h, cross_cache = self.cross.forward(h, memory, mask=memory_mask, context=context)
        h, dropout2_cache = self.dropout2.forward(h, context)
        x = x + h

        h, norm3_cache = self.norm3.forward(x)
        h, feed_forward_cache = self.feed_forward.forward(h, context)
        h, dropout3_cache = self.dropout3.forward(h, context)
        x = x + h
        return x, PreNormDecoderLayerCache(
            norm1_cache,
            self_attention_cache,
            dropout1_cache,
            norm2_cache,
            cross_cache,
            dropout2_cache,
            norm3_cache,
            feed_forward_cache,
            dropout3_cache,
        )

    def backward(self, dy: Array, cache: PreNormDecoderLayerCache) -> tuple[Array, Array]:
        """Return the gradients dx (B, T, D) and dmemory (B, S, D)."""
        # y = x + h: a sum passes its gradient to both terms
        dx = dy
        # h = dropout3(feed_forward(norm3(x)))
        dh = self.dropout3.backward(dx, cache.dropout3)
        dh = self.feed_forward.backward(dh, cache.feed_forward)
        dx = dx + self.norm3.backward(dh, cache.norm3)

        # x = x + h, h = dropout2(cross(norm2(x), memory))
        dh = self.dropout2.backward(dx, cache.dropout2)
        dh, dmemory = self.cross.backward(dh, cache.cross)
        dx = dx + self.norm2.backward(dh, cache.norm2)

        # x = x + h, h = dropout1(self_attention(norm1(x)))
        dh = self.dropout1.backward(dx, cache.dropout1)
        dh = self.self_attention.backward(dh, cache.self_attention)
        return dx + self.norm1.backward(dh, cache.norm1), dmemory

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
        h, kv_cache = self.self_attention.decode_step(self.norm1(x), kv_cache)
        x = x + h
        x = x + self.cross.attend_memory(self.norm2(x), memory_kv, memory_mask)
        return x + self.feed_forward(self.norm3(x)), kv_cache
