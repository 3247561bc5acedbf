"""Stacks of layers: the encoder and the decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.models.transformer.config import TransformerConfig
from npformer.models.transformer.layers import DecoderLayer, EncoderLayer
from npformer.models.transformer.pre_norm import PreNormDecoderLayer, PreNormEncoderLayer
from npformer.models.transformer.sequences import SequenceDecoderLayer, SequenceEncoderLayer
from npformer.nn import LayerNorm
from npformer.nn.attention.kv_cache import KVCache
from npformer.nn.context import INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng
from npformer.nn.module import Module

AnyEncoderLayer = EncoderLayer | PreNormEncoderLayer | SequenceEncoderLayer
AnyDecoderLayer = DecoderLayer | PreNormDecoderLayer | SequenceDecoderLayer


@cache_class
@dataclass(frozen=True)
class StackCache:
    """The cache of a stack of layers. cache[i] is the cache of layer i."""

    layers: tuple[Any, ...]
    norm: Any  # a LayerNormCache, or None without a norm

    def __getitem__(self, index: int) -> Any:
        return self.layers[index]

    def __len__(self) -> int:
        return len(self.layers)


class Encoder(Module):
    """The encoder: n_layers encoder layers, followed by a layer norm if config.final_norm is True.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) -> memory (B, S, D).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.layers = [make_encoder_layer(config, rng=rng, dtype=dtype) for _ in range(config.n_layers)]
        self.norm = make_final_norm(config, dtype)

    def __getitem__(self, index: int) -> Any:
        return self.layers[index]

    def forward(
        self, x: Array, mask: Array | AttentionMask | None = None, context: Context = INFERENCE
    ) -> tuple[Array, StackCache]:
        """Compute all layers.

        Args:
            x: The vectors of the source tokens, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, S, S), or an AttentionMask.
            context: The settings of the forward pass.

        Returns:
            The memory, of shape (B, S, D), and the cache.
        """
        caches, norm_cache = [], None
        for layer in self.layers:
            x, cache = layer.forward(x, mask, context)
            caches.append(cache)
        if self.norm is not None:
            x, norm_cache = self.norm.forward(x)
        return x, StackCache(tuple(caches), norm_cache)

    def backward(self, dy: Array, cache: StackCache) -> Array:
        """Return dx, of shape (B, S, D)."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            dy = layer.backward(dy, layer_cache)
        return dy

    def encode(self, x: Array, mask: Array | AttentionMask | None = None) -> Array:
        """Return the output of all layers, (B, S, D), without the cache for a backward pass.

        The arrays of a layer are freed before the next layer needs its own, so that both can use the same
        memory.
        Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) -> memory (B, S, D).
        """
        for layer in self.layers:
            x = layer.forward(x, mask)[0]
        return x if self.norm is None else self.norm.forward(x)[0]


class Decoder(Module):
    """The decoder: n_decoder_layers decoder layers, which all attend to the output of the encoder.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S) -> y (B, T, D).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        n_layers = config.n_decoder_layers
        self.layers = [make_decoder_layer(config, rng=rng, dtype=dtype) for _ in range(n_layers)]
        self.norm = make_final_norm(config, dtype)

    def __getitem__(self, index: int) -> Any:
        return self.layers[index]

    def forward(
        self,
        x: Array,
        memory: Array,
        mask: Array | AttentionMask | None = None,
        memory_mask: Array | AttentionMask | None = None,
        context: Context = INFERENCE,
    ) -> tuple[Array, StackCache]:
        """Compute all layers.

        Args:
            x: The vectors of the target tokens, of shape (B, T, D).
            memory: The output of the encoder, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, T, T), or an AttentionMask, for self-attention.
            memory_mask: Bool, broadcastable to (B, H, T, S), or an AttentionMask, for cross-attention.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        caches, norm_cache = [], None
        for layer in self.layers:
            x, cache = layer.forward(x, memory, mask, memory_mask, context)
            caches.append(cache)
        if self.norm is not None:
            x, norm_cache = self.norm.forward(x)
        return x, StackCache(tuple(caches), norm_cache)

    def backward(self, dy: Array, cache: StackCache) -> tuple[Array, Array]:
        """Return the gradients dx (B, T, D) and dmemory (B, S, D)."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        dmemory: Any = 0
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            # every layer attended to the same memory, so the gradients of all layers are added
            dy, dmemory_here = layer.backward(dy, layer_cache)
            dmemory = dmemory + dmemory_here
        return dy, dmemory

    def project_memory(self, memory: Array) -> list[KVCache]:
        """Return the keys and values of the memory (B, S, D) for each layer."""
        return [layer.project_memory(memory) for layer in self.layers]

    def decode_step(
        self,
        x: Array,
        kv_cache: Any,
        memory_kv: list[KVCache],
        memory_mask: Array | AttentionMask | None = None,
    ) -> tuple[Array, Any]:
        """Compute the next position, without a cache for a backward pass.

        Args:
            x: The vector of the position, of shape (B, 1, D).
            kv_cache: A list with the KV cache of each layer, or None at the first position.
            memory_kv: The keys and values of the memory for each layer, from project_memory.
            memory_mask: Bool, broadcastable to (B, H, 1, S), or an AttentionMask.

        Returns:
            y, of shape (B, 1, D), and the new list of KV caches.
        """
        kv_cache = [None] * len(self.layers) if kv_cache is None else kv_cache
        new_kv_cache = []
        for layer, layer_kv_cache, layer_memory_kv in zip(self.layers, kv_cache, memory_kv, strict=True):
            x, layer_kv_cache = layer.decode_step(x, layer_kv_cache, layer_memory_kv, memory_mask)
            new_kv_cache.append(layer_kv_cache)
        if self.norm is not None:
            x, _ = self.norm.forward(x)
        return x, new_kv_cache


@cache_class
class EncoderDecoderCache(NamedTuple):
    """The cache of EncoderDecoder."""

    encoder: StackCache
    decoder: StackCache


class EncoderDecoder(Module):
    """An encoder and a decoder that attends to its output, on vectors: a Transformer without embeddings.

        y = decoder(target, encoder(source))

    Shapes: source (B, S, D), target (B, T, D) -> y (B, T, D).

    Args:
        encoder: The encoder.
        decoder: The decoder.

    Source: Vaswani et al. 2017, figure 1.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        self.encoder, self.decoder = encoder, decoder

    def forward(
        self,
        source: Array,
        target: Array,
        source_mask: Array | AttentionMask | None = None,
        target_mask: Array | AttentionMask | None = None,
        memory_mask: Array | AttentionMask | None = None,
        context: Context = INFERENCE,
    ) -> tuple[Array, EncoderDecoderCache]:
        """Compute the encoder, then the decoder.

        Args:
            source: The vectors of the source tokens, of shape (B, S, D).
            target: The vectors of the target tokens, of shape (B, T, D).
            source_mask: Bool, broadcastable to (B, H, S, S), for the self-attention of the encoder.
            target_mask: Bool, broadcastable to (B, H, T, T), for the self-attention of the decoder.
            memory_mask: Bool, broadcastable to (B, H, T, S), for cross-attention.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        memory, encoder_cache = self.encoder.forward(source, source_mask, context)  # (B, S, D)
        y, decoder_cache = self.decoder.forward(target, memory, target_mask, memory_mask, context)
        return y, EncoderDecoderCache(encoder_cache, decoder_cache)

    def backward(self, dy: Array, cache: EncoderDecoderCache) -> tuple[Array, Array]:
        """Return the gradients dsource (B, S, D) and dtarget (B, T, D)."""
        # y = decoder(target, memory), memory = encoder(source)
        dtarget, dmemory = self.decoder.backward(dy, cache.decoder)
        return self.encoder.backward(dmemory, cache.encoder), dtarget


def make_encoder_layer(
    config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
) -> AnyEncoderLayer:
    """Return an encoder layer of the class that config.norm asks for.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    classes: dict[str, type[AnyEncoderLayer]] = {"post": EncoderLayer, "pre": PreNormEncoderLayer}
    return classes.get(config.norm, SequenceEncoderLayer)(config, rng=rng, dtype=dtype)


def make_decoder_layer(
    config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
) -> AnyDecoderLayer:
    """Return a decoder layer of the class that config.norm asks for.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    classes: dict[str, type[AnyDecoderLayer]] = {"post": DecoderLayer, "pre": PreNormDecoderLayer}
    return classes.get(config.norm, SequenceDecoderLayer)(config, rng=rng, dtype=dtype)


def make_final_norm(config: TransformerConfig, dtype: Any) -> LayerNorm | None:
    """Return the layer norm after the last layer of a stack, or None if the configuration has none."""
    return LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype) if config.final_norm else None
