"""Stacks of layers: the encoder and the decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.norm import LayerNormCache
from npformer.models.transformer.config import TransformerConfig
from npformer.models.transformer.layers import DecoderLayer, EncoderLayer
from npformer.nn import LayerNorm
from npformer.nn.attention.kv_cache import KVCache
from npformer.nn.context import INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng
from npformer.nn.module import Module


@cache_class
@dataclass(frozen=True)
class StackCache:
    """The cache of a stack. cache[i] is the cache of layer i."""

    layers: tuple[Any, ...]
    norm: LayerNormCache | None

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
        self.layers = [EncoderLayer(config, rng=rng, dtype=dtype) for _ in range(config.n_layers)]
        self.norm = make_final_norm(config, dtype)

    def __getitem__(self, index: int) -> Any:
        return self.layers[index]

    def forward(
        self, x: Array, mask: Array | AttentionMask | None = None, context: Context = INFERENCE
    ) -> tuple[Array, Any]:
        """Return (memory, cache). The mask is a bool array or an AttentionMask."""
        caches, norm = [], None
        for layer in self.layers:
            x, cache = layer.forward(x, mask, context)
            caches.append(cache)
        if self.norm is not None:
            x, norm = self.norm.forward(x)
        return x, StackCache(tuple(caches), norm)

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            dy = layer.backward(dy, layer_cache)
        return dy

    def decode_step(self, x: Array, kv_cache: Any) -> tuple[Array, Any]:
        """Compute the next position under a causal mask.

        Shapes: x (B, 1, D) -> y (B, 1, D). kv_cache has one entry for each layer, and is None at first.
        Returns (y, kv_cache).
        """
        kv_cache = [None] * len(self.layers) if kv_cache is None else kv_cache
        new = []
        for layer, layer_kv_cache in zip(self.layers, kv_cache, strict=True):
            x, kept = layer.decode_step(x, layer_kv_cache)
            new.append(kept)
        if self.norm is not None:
            x, _ = self.norm.forward(x)
        return x, new


class Decoder(Module):
    """The decoder: n_layers decoder layers, which all attend to the output of the encoder.

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
        self.layers = [DecoderLayer(config, rng=rng, dtype=dtype) for _ in range(config.n_layers)]
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
    ) -> tuple[Array, Any]:
        """Return (y, cache). mask and memory_mask are bool arrays or AttentionMasks."""
        caches, norm = [], None
        for layer in self.layers:
            x, cache = layer.forward(x, memory, mask, memory_mask, context)
            caches.append(cache)
        if self.norm is not None:
            x, norm = self.norm.forward(x)
        return x, StackCache(tuple(caches), norm)

    def backward(self, dy: Array, cache: Any) -> tuple[Array, Array]:
        """Return (dx, dmemory)."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        dmemory: Any = 0
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            # every layer attended to the same memory, so its gradients add up
            dy, dmemory_here = layer.backward(dy, layer_cache)
            dmemory = dmemory + dmemory_here
        return dy, dmemory

    def project_memory(self, memory: Array) -> Any:
        """Return the keys and values of the encoder's output for each layer."""
        return [layer.project_memory(memory) for layer in self.layers]

    def decode_step(
        self, x: Array, kv_cache: Any, memory: list[KVCache], memory_mask: Array | AttentionMask | None = None
    ) -> tuple[Array, Any]:
        """Compute the next position.

        Shapes: x (B, 1, D) -> y (B, 1, D). kv_cache and memory have one entry for each layer. kv_cache is
        None at first. Returns (y, kv_cache).
        """
        kv_cache = [None] * len(self.layers) if kv_cache is None else kv_cache
        new = []
        for layer, layer_kv_cache, layer_memory in zip(self.layers, kv_cache, memory, strict=True):
            x, kept = layer.decode_step(x, layer_kv_cache, layer_memory, memory_mask)
            new.append(kept)
        if self.norm is not None:
            x, _ = self.norm.forward(x)
        return x, new


def make_final_norm(config: TransformerConfig, dtype: Any) -> LayerNorm | None:
    """Return the layer norm after the last layer of a stack, or None if the configuration has none."""
    return LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype) if config.final_norm else None
