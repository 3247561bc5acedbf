"""Gemma 1, 2 and 3 (text): Llama with a larger input, and from Gemma 2 on with norms on both sides.

    Gemma 1:      x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))
    Gemma 2, 3:   x = x + norm(self_attention(norm(x))),  x = x + norm(feed_forward(norm(x)))

All three multiply the embeddings by sqrt(D), and the gate of the feed-forward network is the tanh GELU.

In Gemma 2 and 3, some layers are local: a token attends to a window of the tokens before it, and only the
others look at all. The local layers make the KV cache small, and in Gemma 3, they have rotary positions with
a base of their own. Gemma 2 caps scores and logits softly; Gemma 3 normalizes queries and keys instead.

Source: Gemma team 2024, "Gemma", section 2; "Gemma 2", section 2; 2025, "Gemma 3", section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import Registry
from npformer.functional.caches import cache_class
from npformer.functional.masks import causal_mask
from npformer.functional.soft_cap import soft_cap, soft_cap_backward
from npformer.models.gpt import GPT, GPTConfig, make_attention, make_feed_forward, make_norm
from npformer.models.settings import registry
from npformer.nn import (
    CappedAttention,
    Dropout,
    MultiHeadAttention,
    PreallocatedKVCache,
    QKNormAttention,
    RotaryPositions,
)
from npformer.nn.attention.multi_head import MultiHeadCache
from npformer.nn.context import AttentionMask, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.feed_forward import GatedFeedForwardCache
from npformer.nn.module import Module
from npformer.nn.norm import NormCache


@dataclass(frozen=True)
class GemmaConfig(GPTConfig):
    """The settings of a Gemma 1: those of a GPT, with the defaults of the family."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of Gemma", {})

    norm: str = "rms"
    positions: str = "rotary"
    activation: str = "geglu_tanh"
    bias: bool = False


class Gemma(GPT):
    """A GPT whose embeddings are multiplied by sqrt(D). Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self, config: GemmaConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        super().__init__(config, rng=rng, dtype=dtype)
        self.embedding.tokens.scale = math.sqrt(config.d_model)


@dataclass(frozen=True)
class Gemma2Config(GemmaConfig):
    """The settings of a Gemma 2 or 3: those of a Gemma 1, and those of attention and of the local layers."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of Gemma 2", {})

    query_scale: int = 256  # the scores are divided by its square root
    qk_norm: bool = False  # True in Gemma 3
    score_cap: float | None = None
    logit_cap: float | None = None
    local: tuple[int, ...] = ()  # the layers with a window, counted from 0
    local_window: int = 4096  # a token of these layers attends to itself and to the window - 1 before it
    local_base: float = 10000.0  # of the rotary positions of these layers

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            choices={"rotary_scaling": ("none",)},
            counts=("local_window", "query_scale"),
            indices=(),
            shares=(),
            positive=("local_base",),
        )
        object.__setattr__(self, "local", tuple(self.local))  # a list in a checkpoint

    def count_parameters(self) -> int:
        """Return the number of parameters of the model, without building it."""
        gains = 2 * self.d_model + 2 * self.d_head * int(self.qk_norm)  # of a layer, beside those of Gemma 1
        return super().count_parameters() + self.n_layers * gains


@cache_class
class Gemma2BlockCache(NamedTuple):
    """The cache of Gemma2Block, with one entry for each of its parts."""

    norm1: NormCache
    self_attention: MultiHeadCache
    after1: NormCache
    dropout1: DropoutCache
    norm2: NormCache
    feed_forward: GatedFeedForwardCache
    after2: NormCache
    dropout2: DropoutCache


class Gemma2Block(Module):
    """A layer of Gemma 2 and 3, with a norm before and after each sublayer.

        x = x + after1(self_attention(norm1(x))),  then x = x + after2(feed_forward(norm2(x)))

    Shapes: x (B, T, D) -> y (B, T, D).

    Args:
        config: The configuration.
        rotary: The rotation of the layer.
        window: The window of a local layer, or None.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        config: Gemma2Config,
        rotary: RotaryPositions,
        window: int | None,
        rng: np.random.Generator,
        dtype: Any,
    ) -> None:
        kind: Callable[..., MultiHeadAttention] = MultiHeadAttention
        if config.qk_norm:
            kind = partial(QKNormAttention, eps=config.norm_eps)
        elif config.score_cap is not None:
            kind = partial(CappedAttention, cap=config.score_cap)
        self.window = window
        self.self_attention = make_attention(config, rotary, rng, dtype, kind)
        self.self_attention.scale = 1 / math.sqrt(config.query_scale)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.norm1, self.after1 = make_norm(config, dtype), make_norm(config, dtype)
        self.norm2, self.after2 = make_norm(config, dtype), make_norm(config, dtype)
        self.dropout1, self.dropout2 = Dropout(config.dropout), Dropout(config.dropout)

    def forward(self, x: Array, mask: AttentionMask, context: Context) -> tuple[Array, Gemma2BlockCache]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            mask: The causal mask, which a local layer replaces by a narrower one.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        if self.window is not None:
            mask = AttentionMask(causal_mask(x.shape[1], x, window=self.window))  # (T, T)
        h, norm1_cache = self.norm1.forward(x)
        h, attention_cache = self.self_attention.forward(h, mask=mask, context=context)
        h, after1_cache = self.after1.forward(h)
        h, dropout1_cache = self.dropout1.forward(h, context)
        x = x + h  # the residual connection

        h, norm2_cache = self.norm2.forward(x)
        h, feed_forward_cache = self.feed_forward.forward(h, context)
        h, after2_cache = self.after2.forward(h)
        h, dropout2_cache = self.dropout2.forward(h, context)
        first = norm1_cache, attention_cache, after1_cache, dropout1_cache
        return x + h, Gemma2BlockCache(*first, norm2_cache, feed_forward_cache, after2_cache, dropout2_cache)

    def backward(self, dy: Array, cache: Gemma2BlockCache) -> Array:
        """Return dx, of shape (B, T, D)."""
        # y = x + h, h = dropout2(after2(feed_forward(norm2(x)))): a sum passes its gradient to both terms
        dh = self.dropout2.backward(dy, cache.dropout2)
        dh = self.after2.backward(dh, cache.after2)
        dh = self.feed_forward.backward(dh, cache.feed_forward)
        dx = dy + self.norm2.backward(dh, cache.norm2)

        # x = x + h, h = dropout1(after1(self_attention(norm1(x))))
        dh = self.dropout1.backward(dx, cache.dropout1)
        dh = self.after1.backward(dh, cache.after1)
        dh = self.self_attention.backward(dh, cache.self_attention)
        return dx + self.norm1.backward(dh, cache.norm1)

    def next_positions(self, x: Array, kv_cache: PreallocatedKVCache, mask: Array | None) -> Array:
        """Compute the output of the layer for the next T positions, as BlockDecoding.next_positions does.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            kv_cache: The keys and values of the positions before.
            mask: The mask of a layer without a window, or None.
        """
        if self.window is not None:
            mask = causal_mask(x.shape[1], x, window=self.window, start=kv_cache.length)
        h, _ = self.self_attention.decode_step(self.norm1(x), kv_cache, mask)
        x = x + self.after1(h)
        y: Array = x + self.after2(self.feed_forward(self.norm2(x)))
        return y


class CappedOutput(Module):
    """An output layer whose logits are softly capped: y = cap tanh(output(x) / cap).

    Shapes: x (..., D) -> y (..., V).

    Args:
        output: The output layer.
        cap: The largest size of a logit.
    """

    def __init__(self, output: Any, cap: float) -> None:
        self.output, self.cap = output, cap

    def forward(self, x: Array) -> tuple[Array, Any]:
        """Return y, of shape (..., V), and the cache."""
        logits, output_cache = self.output.forward(x)
        y, cap_cache = soft_cap(logits, self.cap)
        return y, (output_cache, cap_cache)

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of shape (..., D)."""
        output_cache, cap_cache = cache
        dx: Array = self.output.backward(soft_cap_backward(dy, cap_cache), output_cache)
        return dx


class Gemma2(Gemma):
    """A Gemma with the blocks of Gemma 2 and 3. Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    config: Gemma2Config

    def __init__(
        self, config: Gemma2Config, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        super().__init__(config, rng=rng, dtype=dtype)
        if config.head and config.logit_cap is not None:
            self.output: Any = CappedOutput(self.output, config.logit_cap)

    def make_layers(self, rng: np.random.Generator, dtype: Any) -> list[Gemma2Block]:
        """Return the layers, local ones and others."""
        c = self.config
        everywhere, near = (
            RotaryPositions(c.context, c.d_head, base=base, dtype=dtype)
            for base in (c.rotary_base, c.local_base)
        )
        return [
            Gemma2Block(c, near, c.local_window, rng, dtype)
            if layer in c.local
            else Gemma2Block(c, everywhere, None, rng, dtype)
            for layer in range(c.n_layers)
        ]
