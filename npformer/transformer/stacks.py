"""Stacks of layers: the encoder and the decoder."""

from dataclasses import dataclass

import numpy as np

from npformer.functional.norm import LayerNormCache
from npformer.layers import LayerNorm
from npformer.layers.init import default_rng
from npformer.module import Module
from npformer.transformer.layers import DecoderLayer, EncoderLayer


@dataclass(frozen=True)
class StackCache:
    """The cache of a stack: stack[i] is the cache of layer i."""

    layers: tuple
    norm: LayerNormCache | None

    def __getitem__(self, index):
        return self.layers[index]

    def __len__(self):
        return len(self.layers)


class Encoder(Module):
    """N encoder layers one after the other, and a last norm where the configuration asks for one.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) -> memory (B, S, D).
    """

    def __init__(self, config, *, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        self.layers = [EncoderLayer(config, rng=rng, dtype=dtype) for _ in range(config.n_layers)]
        self.norm = make_final_norm(config, dtype)

    def __getitem__(self, index):
        return self.layers[index]

    def forward(self, x, mask=None, *, query_mask=None, train=False, rng=None, packing=None):
        """Returns (memory, cache). packing: where the words stand, when x is packed rows (N, D)."""
        caches, norm = [], None
        for layer in self.layers:
            x, cache = layer.forward(x, mask, query_mask=query_mask, train=train, rng=rng, packing=packing)
            caches.append(cache)
        if self.norm is not None:
            x, norm = self.norm.forward(x)
        return x, StackCache(tuple(caches), norm)

    def backward(self, dy, cache):
        """Returns dx."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            dy = layer.backward(dy, layer_cache)
        return dy

    def step(self, x, past):
        """Under a causal mask, the one position that comes next. past (None at first) has one entry a layer.

        Returns (y, past).
        """
        past = [None] * len(self.layers) if past is None else past
        new = []
        for layer, layer_past in zip(self.layers, past, strict=True):
            x, kept = layer.step(x, layer_past)
            new.append(kept)
        if self.norm is not None:
            x, _ = self.norm.forward(x)
        return x, new


class Decoder(Module):
    """N decoder layers one after the other, each reading the encoder's output.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S) -> y (B, T, D).
    """

    def __init__(self, config, *, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        self.layers = [DecoderLayer(config, rng=rng, dtype=dtype) for _ in range(config.n_layers)]
        self.norm = make_final_norm(config, dtype)

    def __getitem__(self, index):
        return self.layers[index]

    def forward(
        self,
        x,
        memory,
        mask=None,
        memory_mask=None,
        *,
        query_mask=None,
        train=False,
        rng=None,
        packing=None,
        memory_packing=None,
    ):
        """Returns (y, cache). packing and memory_packing: where the words stand, when rows are packed."""
        caches, norm = [], None
        for layer in self.layers:
            x, cache = layer.forward(
                x,
                memory,
                mask,
                memory_mask,
                query_mask=query_mask,
                train=train,
                rng=rng,
                packing=packing,
                memory_packing=memory_packing,
            )
            caches.append(cache)
        if self.norm is not None:
            x, norm = self.norm.forward(x)
        return x, StackCache(tuple(caches), norm)

    def backward(self, dy, cache):
        """Returns (dx, dmemory)."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        dmemory = 0
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            # every layer read the same memory, so its gradients add up
            dy, dmemory_here = layer.backward(dy, layer_cache)
            dmemory = dmemory + dmemory_here
        return dy, dmemory

    def remember(self, memory):
        """What each layer keeps of the encoder's output while a sentence is decoded."""
        return [layer.remember(memory) for layer in self.layers]

    def step(self, x, past, memory, memory_mask=None):
        """The one position that comes next. past (None at first) and memory hold one entry a layer.

        Returns (y, past).
        """
        past = [None] * len(self.layers) if past is None else past
        new = []
        for layer, layer_past, layer_memory in zip(self.layers, past, memory, strict=True):
            x, kept = layer.step(x, layer_past, layer_memory, memory_mask)
            new.append(kept)
        if self.norm is not None:
            x, _ = self.norm.forward(x)
        return x, new


def make_final_norm(config, dtype):
    """The norm on top of a stack, or None."""
    return LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype) if config.final_norm else None
