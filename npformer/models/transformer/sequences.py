"""Layers whose norms, dropout and sums are given as letters before and after a dash, as in tensor2tensor.

The dash stands for a sublayer f, such as self-attention, and x is the input of f:

    n  normalize      d  dropout      a  add x

"n-da" computes the same as a pre-norm layer, x + dropout(f(norm(x))), and "-dan" the same as the paper's
layer, norm(x + dropout(f(x))). "n-dna" normalizes the output of the sublayer before it is added to x. "n-dan"
has a norm before the sublayer and another one after the sum.

Source: tensor2tensor's layer_preprocess_sequence and layer_postprocess_sequence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.norm import LayerNormCache
from npformer.models.transformer.config import TransformerConfig, check_sequence
from npformer.models.transformer.layers import make_attention, make_feed_forward
from npformer.nn import Dropout, LayerNorm
from npformer.nn.attention.kv_cache import KVCache
from npformer.nn.attention.multi_head import MultiHeadCache
from npformer.nn.context import INFERENCE, AttentionMask, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.feed_forward import FeedForwardCache
from npformer.nn.init import default_rng
from npformer.nn.module import Module


@cache_class
class PreprocessCache(NamedTuple):
    """The cache of Preprocess."""

    norm: LayerNormCache | None


class Preprocess(Module):
    """The letters before the dash: h = norm(x) for "n", and h = x for none. Shapes: x (..., D) -> h (..., D).

    Args:
        config: The configuration, whose norm is a sequence.
        dtype: The dtype of the parameters.
    """

    def __init__(self, config: TransformerConfig, dtype: Any = np.float32) -> None:
        self.norm = _norm_if("n" in config.norm.partition("-")[0], config, dtype)

    def forward(self, x: Array) -> tuple[Array, PreprocessCache]:
        """Return h, of shape (..., D), and the cache."""
        h, norm = (x, None) if self.norm is None else self.norm.forward(x)
        return h, PreprocessCache(norm)

    def backward(self, dh: Array, cache: PreprocessCache) -> Array:
        """Return dx, of shape (..., D)."""
        return dh if self.norm is None else self.norm.backward(dh, cache.norm)


@cache_class
class PostprocessCache(NamedTuple):
    """The cache of Postprocess, with an entry for each letter."""

    dropout_mask: DropoutCache  # (..., D), or None
    norm: LayerNormCache | None


class Postprocess(Module):
    """The letters after the dash, such as y = norm(x + dropout(h)) for "dan".

    Shapes: x, h, y (..., D).

    Args:
        config: The configuration, whose norm is a sequence.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the norm of the configuration is no sequence.
    """

    def __init__(self, config: TransformerConfig, dtype: Any = np.float32) -> None:
        check_sequence(config.norm)
        self.letters = config.norm.partition("-")[2]
        self.dropout = Dropout(config.dropout)
        self.norm = _norm_if("n" in self.letters, config, dtype)

    def forward(self, x: Array, h: Array, context: Context = INFERENCE) -> tuple[Array, PostprocessCache]:
        """Apply the operations from the first letter to the last.

        Args:
            x: The input of the sublayer with its preprocessing, of shape (..., D).
            h: The output of the sublayer, of shape (..., D).
            context: The settings of the forward pass.

        Returns:
            y, of shape (..., D), and the cache.
        """
        dropout_mask = norm_cache = None
        for letter in self.letters:
            if letter == "d":
                h, dropout_mask = self.dropout.forward(h, context)
            elif letter == "a":
                h = x + h
            else:
                h, norm_cache = self.norm.forward(h)
        return h, PostprocessCache(dropout_mask, norm_cache)

    def backward(self, dy: Array, cache: PostprocessCache) -> tuple[Array, Array]:
        """Return the gradients dx and dh, each of shape (..., D)."""
        dx, dh = dy, dy
        for letter in reversed(self.letters):
            if letter == "d":
                dh = self.dropout.backward(dh, cache.dropout_mask)
            elif letter == "a":
                dx = dh  # a sum passes its gradient to both terms
            else:
                dh = self.norm.backward(dh, cache.norm)
        return dx, dh


@cache_class
class SequenceEncoderLayerCache(NamedTuple):
    """The cache of SequenceEncoderLayer, with one entry for each of its parts."""

    preprocess1: PreprocessCache
    self_attention: MultiHeadCache
    postprocess1: PostprocessCache
    preprocess2: PreprocessCache
    feed_forward: FeedForwardCache
    postprocess2: PostprocessCache


class SequenceEncoderLayer(Module):
    """An encoder layer with the letters of a sequence around each of its two sublayers.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) -> y (B, S, D).

    Args:
        config: The configuration, whose norm is a sequence.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the norm of the configuration is no sequence.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.preprocess1, self.postprocess1 = Preprocess(config, dtype), Postprocess(config, dtype)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.preprocess2, self.postprocess2 = Preprocess(config, dtype), Postprocess(config, dtype)

    def forward(
        self, x: Array, mask: Array | AttentionMask | None = None, context: Context = INFERENCE
    ) -> tuple[Array, SequenceEncoderLayerCache]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, S, S), or an AttentionMask. True means that the query may
                attend to the key.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, S, D), and the cache.
        """
        h, preprocess1_cache = self.preprocess1.forward(x)
        h, self_attention_cache = self.self_attention.forward(h, mask=mask, context=context)
        x, postprocess1_cache = self.postprocess1.forward(x, h, context)

        h, preprocess2_cache = self.preprocess2.forward(x)
        h, feed_forward_cache = self.feed_forward.forward(h, context)
        x, postprocess2_cache = self.postprocess2.forward(x, h, context)
        return x, SequenceEncoderLayerCache(
            preprocess1_cache,
            self_attention_cache,
            postprocess1_cache,
            preprocess2_cache,
            feed_forward_cache,
            postprocess2_cache,
        )

    def backward(self, dy: Array, cache: SequenceEncoderLayerCache) -> Array:
        """Return dx, of shape (B, S, D)."""
        # y = postprocess2(x, h)
        dx, dh = self.postprocess2.backward(dy, cache.postprocess2)
        # h = feed_forward(preprocess2(x))
        dh = self.feed_forward.backward(dh, cache.feed_forward)
        dx = dx + self.preprocess2.backward(dh, cache.preprocess2)

        # x = postprocess1(x, h)
        dx, dh = self.postprocess1.backward(dx, cache.postprocess1)
        # h = self_attention(preprocess1(x))
        dh = self.self_attention.backward(dh, cache.self_attention)
        return dx + self.preprocess1.backward(dh, cache.preprocess1)


@cache_class
class SequenceDecoderLayerCache(NamedTuple):
    """The cache of SequenceDecoderLayer, with one entry for each of its parts."""

    preprocess1: PreprocessCache
    self_attention: MultiHeadCache
    postprocess1: PostprocessCache
    preprocess2: PreprocessCache
    cross: MultiHeadCache
    postprocess2: PostprocessCache
    preprocess3: PreprocessCache
    feed_forward: FeedForwardCache
    postprocess3: PostprocessCache


class SequenceDecoderLayer(Module):
    """A decoder layer with the letters of a sequence around each of its three sublayers.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S) -> y (B, T, D).

    Args:
        config: The configuration, whose norm is a sequence.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the norm of the configuration is no sequence.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.preprocess1, self.postprocess1 = Preprocess(config, dtype), Postprocess(config, dtype)
        self.cross = make_attention(config, "kv", rng, dtype)
        self.preprocess2, self.postprocess2 = Preprocess(config, dtype), Postprocess(config, dtype)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.preprocess3, self.postprocess3 = Preprocess(config, dtype), Postprocess(config, dtype)

    def forward(
        self,
        x: Array,
        memory: Array,
        mask: Array | AttentionMask | None = None,
        memory_mask: Array | AttentionMask | None = None,
        context: Context = INFERENCE,
    ) -> tuple[Array, SequenceDecoderLayerCache]:
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
        h, preprocess1_cache = self.preprocess1.forward(x)
        h, self_attention_cache = self.self_attention.forward(h, mask=mask, context=context)
        x, postprocess1_cache = self.postprocess1.forward(x, h, context)

        h, preprocess2_cache = self.preprocess2.forward(x)
        h, cross_cache = self.cross.forward(h, memory, mask=memory_mask, context=context)
        x, postprocess2_cache = self.postprocess2.forward(x, h, context)

        h, preprocess3_cache = self.preprocess3.forward(x)
        h, feed_forward_cache = self.feed_forward.forward(h, context)
        x, postprocess3_cache = self.postprocess3.forward(x, h, context)
        return x, SequenceDecoderLayerCache(
            preprocess1_cache,
            self_attention_cache,
            postprocess1_cache,
            preprocess2_cache,
            cross_cache,
            postprocess2_cache,
            preprocess3_cache,
            feed_forward_cache,
            postprocess3_cache,
        )

    def backward(self, dy: Array, cache: SequenceDecoderLayerCache) -> tuple[Array, Array]:
        """Return the gradients dx (B, T, D) and dmemory (B, S, D)."""
        # y = postprocess3(x, h)
        dx, dh = self.postprocess3.backward(dy, cache.postprocess3)
        # h = feed_forward(preprocess3(x))
        dh = self.feed_forward.backward(dh, cache.feed_forward)
        dx = dx + self.preprocess3.backward(dh, cache.preprocess3)

        # x = postprocess2(x, h)
        dx, dh = self.postprocess2.backward(dx, cache.postprocess2)
        # h = cross(preprocess2(x), memory)
        dh, dmemory = self.cross.backward(dh, cache.cross)
        dx = dx + self.preprocess2.backward(dh, cache.preprocess2)

        # x = postprocess1(x, h)
        dx, dh = self.postprocess1.backward(dx, cache.postprocess1)
        # h = self_attention(preprocess1(x))
        dh = self.self_attention.backward(dh, cache.self_attention)
        return dx + self.preprocess1.backward(dh, cache.preprocess1), dmemory

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
        h, kv_cache = self.self_attention.decode_step(self.preprocess1(x), kv_cache)
        x = self.postprocess1(x, h)
        h = self.cross.attend_memory(self.preprocess2(x), memory_kv, memory_mask)
        x = self.postprocess2(x, h)
        return self.postprocess3(x, self.feed_forward(self.preprocess3(x))), kv_cache


def _norm_if(wanted: bool, config: TransformerConfig, dtype: Any) -> Any:
    """Return a LayerNorm if it is wanted, and None otherwise."""
    return LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype) if wanted else None
