"""Decoding with a GPT: each step computes the newest tokens only, and reads the others from a KV cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import Array, like
from npformer.errors import UserError
from npformer.functional.ids import as_ids
from npformer.functional.masks import causal_mask
from npformer.models.gpt.config import GPTConfig
from npformer.nn import PreallocatedKVCache


class GPTDecoding:
    """The methods of GPT for decoding. They keep nothing for a backward pass."""

    config: GPTConfig
    embedding: Any
    layers: list[Any]
    norm: Any
    output: Any
    _take_ids: Callable[..., Array]

    def empty_kv_cache(self, capacity: int | None = None) -> list[PreallocatedKVCache]:
        """Return the KV cache before the first position, one for each layer.

        Args:
            capacity: The largest number of positions. The default is the context.
        """
        return [
            PreallocatedKVCache(self.config.context if capacity is None else capacity) for _ in self.layers
        ]

    def decode_step(
        self,
        ids: Any,
        start: int | Array,
        kv_cache: list[PreallocatedKVCache] | None,
        *,
        lengths: Array | None = None,
        every: bool = False,
    ) -> tuple[Array, list[PreallocatedKVCache]]:
        """Compute the logits of the next token from the newest tokens and the KV cache.

        Args:
            ids: The newest tokens of each sentence: one, of shape (B,), or several, of shape (B, T), such as
                a whole prompt.
            start: The position of the first of these tokens, which is the number of tokens that the KV cache
                holds: one number for all sentences, or an array (B,) on the host.
            kv_cache: The KV cache that the previous call returned. At the first position it is None, or the
                result of empty_kv_cache.
            lengths: The number of tokens of each sentence, an array (B,) on the host, if ids are prompts of
                different lengths with padding at the end. The default is T for all sentences.
            every: Return the logits after each of the newest tokens, and not after the last one only. It has
                no effect if lengths are given.

        Returns:
            The logits after the last token, of shape (B, V), or after every token, of shape (B, T, V), and
            the KV cache, which is extended in place.

        Raises:
            UserError: If ids are outside the vocabulary, if there are more tokens than the context, if the
                KV cache holds another number of tokens than start, or if the model has no head.
        """
        if self.output is None:
            raise UserError("this model has no head, which computes the logits: make it with head=True")
        ids = as_ids(ids, "ids")
        ids = self._take_ids(ids if ids.ndim > 1 else ids[:, None], int(np.max(start)))  # (B, T)
        kv_cache = self.empty_kv_cache() if kv_cache is None else kv_cache
        if not np.array_equal(kv_cache[0].length, start):
            raise UserError(
                f"start is {start}, and the KV cache holds {kv_cache[0].length} tokens: make them equal"
            )
        mask = self._step_mask(ids, start)
        x, _ = self.embedding.forward(ids, start=start)  # (B, T, D)
        for layer, layer_kv_cache in zip(self.layers, kv_cache, strict=True):
            x = layer.next_positions(x, layer_kv_cache, mask)
        if lengths is None:
            x = x if every else x[:, -1]  # (B, D) the last token predicts the next one
        else:
            x = x[like(np.arange(len(x)), x), like(lengths - 1, x)]
            for layer_kv_cache in kv_cache:
                layer_kv_cache.length = start + lengths  # forget the padding
        x, _ = self.norm.forward(x)
        logits, _ = self.output.forward(x)  # (B, V) or (B, T, V)
        return logits, kv_cache

    def _step_mask(self, ids: Array, start: int | Array) -> Array | None:
        """Return the mask of a step of decoding, or None if its only token attends to all keys."""
        if ids.shape[1] == 1 and self.config.window is None and isinstance(start, int):
            return None
        return causal_mask(ids.shape[1], ids, window=self.config.window, start=start)


class BlockDecoding:
    """The method of Block for decoding. It keeps nothing for a backward pass."""

    self_attention: Any
    feed_forward: Any
    norm1: Any
    norm2: Any

    def next_positions(self, x: Array, kv_cache: PreallocatedKVCache, mask: Array | None) -> Array:
        """Compute the output of the layer for the next T positions.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            kv_cache: The keys and values of the S positions before, to which those of x are added.
            mask: Bool, broadcastable to (B, H, T, S + T). True means that the query may attend to the key.
                None means that all queries may attend to all keys.

        Returns:
            y, of shape (B, T, D).
        """
        h, _ = self.self_attention.decode_step(self.norm1(x), kv_cache, mask)
        x = x + h
        y: Array = x + self.feed_forward(self.norm2(x))
        return y
