"""OLMo 2: a Llama whose norms follow the sublayers, with QK-norm.

    block:  x = x + norm(self_attention(x)),  x = x + norm(feed_forward(x))
    where q = rotate(norm(x Wq)) and k = rotate(norm(x Wk)), with one norm for all heads together

As in a pre-norm model, the sum x itself is normalized only at the end. But what a sublayer adds to it has a
fixed length, so no sublayer can make it explode. There are no biases. All else is Llama.

Source: OLMo team 2024, "2 OLMo 2 Furious", section 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from npformer.backend import Array
from npformer.errors import Registry
from npformer.models.gpt import (
    GPT,
    BlockCache,
    GPTConfig,
    LlamaConfig,
    make_attention,
    make_feed_forward,
    make_norm,
    make_rotary,
)
from npformer.models.settings import registry
from npformer.nn import Dropout, PreallocatedKVCache, QKNormAttention, RotaryPositions
from npformer.nn.context import AttentionMask, Context
from npformer.nn.module import Module


@dataclass(frozen=True)
class Olmo2Config(LlamaConfig):
    """The settings of an OLMo 2: those of a Llama, with the defaults of the family."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of OLMo 2", {})

    def count_parameters(self) -> int:
        """Return the number of parameters of the model, without building it."""
        gains = (self.n_heads + self.key_heads) * self.d_head  # of queries and of keys
        return super().count_parameters() + self.n_layers * gains


class Olmo2Block(Module):
    """A layer of OLMo 2: x = x + norm(self_attention(x)), then x = x + norm(feed_forward(x)).

    Shapes: x (B, T, D) -> y (B, T, D).

    Args:
        config: The configuration.
        rotary: The rotation that all layers share.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self, config: GPTConfig, rotary: RotaryPositions, rng: np.random.Generator, dtype: Any
    ) -> None:
        attention = partial(QKNormAttention, whole=True, eps=config.norm_eps)
        self.self_attention = make_attention(config, rotary, rng, dtype, attention)
        self.norm1, self.dropout1 = make_norm(config, dtype), Dropout(config.dropout)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.norm2, self.dropout2 = make_norm(config, dtype), Dropout(config.dropout)

    def forward(self, x: Array, mask: AttentionMask, context: Context) -> tuple[Array, BlockCache]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            mask: The causal mask.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        h, attention_cache = self.self_attention.forward(x, mask=mask, context=context)
        h, norm1_cache = self.norm1.forward(h)
        h, dropout1_cache = self.dropout1.forward(h, context)
        x = x + h  # the residual connection

        h, feed_forward_cache = self.feed_forward.forward(x, context)
        h, norm2_cache = self.norm2.forward(h)
        h, dropout2_cache = self.dropout2.forward(h, context)
        x = x + h
        return x, BlockCache(
            norm1_cache, attention_cache, dropout1_cache, norm2_cache, feed_forward_cache, dropout2_cache
        )

    def backward(self, dy: Array, cache: BlockCache) -> Array:
        """Return dx, of shape (B, T, D)."""
        # y = x + h, h = dropout2(norm2(feed_forward(x))): a sum passes its gradient to both terms
        dh = self.dropout2.backward(dy, cache.dropout2)
        dh = self.norm2.backward(dh, cache.norm2)
        dx = dy + self.feed_forward.backward(dh, cache.feed_forward)

        # x = x + h, h = dropout1(norm1(self_attention(x)))
        dh = self.dropout1.backward(dx, cache.dropout1)
        dh = self.norm1.backward(dh, cache.norm1)
        return dx + self.self_attention.backward(dh, cache.self_attention)

    def next_positions(self, x: Array, kv_cache: PreallocatedKVCache, mask: Array | None) -> Array:
        """Compute the output of the layer for the next T positions, as BlockDecoding.next_positions does.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            kv_cache: The keys and values of the positions before.
            mask: The mask, or None if all queries may attend to all keys.
        """
        h, _ = self.self_attention.decode_step(x, kv_cache, mask)
        x = x + self.norm1(h)
        y: Array = x + self.norm2(self.feed_forward(x))
        return y


class Olmo2(GPT):
    """A GPT with the blocks of OLMo 2. Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def make_layers(self, rng: np.random.Generator, dtype: Any) -> list[Olmo2Block]:
        """Return the layers."""
        rotary = make_rotary(self.config, dtype)
        return [Olmo2Block(self.config, rotary, rng, dtype) for _ in range(self.config.n_layers)]
