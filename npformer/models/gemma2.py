"""Gemma 2 and 3 (text): a Gemma with a norm before and after each sublayer, and with local layers.

    block:  x = x + after1(self_attention(norm1(x))),  x = x + after2(feed_forward(norm2(x)))

In a local layer, a token attends to a window of the tokens before it, and only in the others does it look at
all of them. The local layers make the KV cache small, and in Gemma 3, they have rotary positions with a base
of their own. Gemma 2 caps scores and logits softly; Gemma 3 normalizes queries and keys instead.

Source: Gemma team 2024, "Gemma 2", section 2; 2025, "Gemma 3", section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import Registry, UserError
from npformer.functional.caches import cache_class
from npformer.functional.masks import causal_mask
from npformer.models.gemma import Gemma, GemmaConfig
from npformer.models.gpt import Block, make_norm, make_rotary
from npformer.models.settings import registry
from npformer.nn import CappedAttention, PreallocatedKVCache, QKNormAttention, RotaryPositions
from npformer.nn.attention.multi_head import MultiHeadAttention, MultiHeadCache
from npformer.nn.context import AttentionMask, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.feed_forward import GatedFeedForwardCache
from npformer.nn.norm import NormCache
from npformer.nn.output import CappedOutput


@dataclass(frozen=True)
class Gemma2Config(GemmaConfig):
    """The settings of a Gemma 2 or 3: those of a Gemma 1, and those of attention and of the local layers."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of Gemma 2", {})

    scale_width: int = 256  # the scores are divided by its square root
    qk_norm: bool = False  # True in Gemma 3
    score_cap: float | None = None
    logit_cap: float | None = None
    local: tuple[int, ...] = ()  # the layers with a window, counted from 0
    local_window: int = 4096  # a token of these layers attends to itself and to the window - 1 before it
    local_base: float = 10000.0  # of the rotary positions of these layers

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(counts=("local_window", "scale_width"), positive=("local_base",))
        if self.qk_norm and self.score_cap is not None:
            raise UserError("qk_norm and score_cap are both given: Gemma 2 has a cap, Gemma 3 has QK-norm")
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


class Gemma2Block(Block):
    """A layer of Gemma 2 and 3, with a norm before and after each sublayer.

        x = x + after1(self_attention(norm1(x))),  then x = x + after2(feed_forward(norm2(x)))

    Shapes: x (B, T, D) -> y (B, T, D). The arguments are those of Block, and the window of a local layer.
    """

    def __init__(
        self,
        config: Gemma2Config,
        rotary: RotaryPositions,
        window: int | None,
        rng: np.random.Generator,
        dtype: Any,
    ) -> None:
        kind: Any = partial(QKNormAttention, eps=config.norm_eps) if config.qk_norm else MultiHeadAttention
        if config.score_cap is not None:
            kind = partial(CappedAttention, cap=config.score_cap)
        super().__init__(config, rotary, rng, dtype, kind)
        self.self_attention.scale = 1 / math.sqrt(config.scale_width)
        self.window, self.after1, self.after2 = window, make_norm(config, dtype), make_norm(config, dtype)

    def forward(self, x: Array, mask: AttentionMask, context: Context) -> tuple[Array, Any]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            mask: The causal mask, which a local layer replaces by a narrower one.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and a Gemma2BlockCache.
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

    def backward(self, dy: Array, cache: Any) -> Array:
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
        far, near = make_rotary(c, dtype), make_rotary(c.replace(rotary_base=c.local_base), dtype)
        kinds = {True: (near, c.local_window), False: (far, None)}  # of local layers, and of the others
        return [Gemma2Block(c, *kinds[layer in c.local], rng, dtype) for layer in range(c.n_layers)]
