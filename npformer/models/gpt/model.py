"""GPT, a decoder-only model, with the parts of 2019 or of today. It predicts the next token.

    logits = output(norm(block_n(... block_1(embedding(ids)))))
    block:  x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))

There is no encoder and no cross-attention. A causal mask lets each token attend to itself and to the tokens
before it, so one forward pass trains the predictions at all positions. GPTConfig chooses the parts: those of
GPT-2 (layer norm, learned positions, GELU) or those of Llama (RMS norm, rotary positions, SwiGLU, key heads
that are shared by several query heads).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.ids import take_ids
from npformer.functional.masks import causal_mask
from npformer.models.gpt.config import GPTConfig
from npformer.models.gpt.decoding import BlockDecoding, GPTDecoding
from npformer.nn import (
    Dropout,
    FeedForward,
    GatedFeedForward,
    InputEmbedding,
    LayerNorm,
    Linear,
    MultiHeadAttention,
    RMSNorm,
    RotaryPositions,
    TiedProjection,
)
from npformer.nn.attention.multi_head import MultiHeadCache
from npformer.nn.context import AttentionMask, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.embedding import InputCache
from npformer.nn.feed_forward import FeedForwardCache, GatedFeedForwardCache
from npformer.nn.init import UNDRAWN, default_rng, normal
from npformer.nn.module import Module, Parameter
from npformer.nn.norm import NormCache

INITIAL_STD = 0.02  # the standard deviation of the initial weights, as in GPT-2


@cache_class  # a short repr, and tables in notebooks
class BlockCache(NamedTuple):
    """The cache of Block, with one entry for each of its parts."""

    norm1: NormCache
    self_attention: MultiHeadCache
    dropout1: DropoutCache
    norm2: NormCache
    feed_forward: FeedForwardCache | GatedFeedForwardCache
    dropout2: DropoutCache


class Block(BlockDecoding, Module):
    """A layer of GPT: x = x + self_attention(norm(x)), then x = x + feed_forward(norm(x)).

    A PreNormEncoderLayer computes the same. It is written out here so that a GPT can be read in one file.
    Shapes: x (B, T, D) -> y (B, T, D).

    Args:
        config: The configuration.
        rotary: The rotation that all layers share, or None with learned positions.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        attention: The class of the self-attention, or a function that makes one.
        feed_forward: The function that makes the second sublayer; by default make_feed_forward.

    Source: Radford et al. 2019, section 2.3.
    """

    def __init__(
        self,
        config: GPTConfig,
        rotary: RotaryPositions | None,
        rng: np.random.Generator,
        dtype: Any,
        attention: Callable[..., MultiHeadAttention] = MultiHeadAttention,
        feed_forward: Callable[..., Any] | None = None,
    ) -> None:
        self.self_attention = make_attention(config, rotary, rng, dtype, attention)
        self.norm1 = make_norm(config, dtype)
        self.dropout1 = Dropout(config.dropout)
        self.feed_forward = (feed_forward or make_feed_forward)(config, rng, dtype)
        self.norm2 = make_norm(config, dtype)
        self.dropout2 = Dropout(config.dropout)

    def forward(self, x: Array, mask: AttentionMask, context: Context) -> tuple[Array, BlockCache]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            mask: The causal mask.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        h, norm1_cache = self.norm1.forward(x)
        h, self_attention_cache = self.self_attention.forward(h, mask=mask, context=context)
        h, dropout1_cache = self.dropout1.forward(h, context)
        x = x + h  # the residual connection

        h, norm2_cache = self.norm2.forward(x)
        h, feed_forward_cache = self.feed_forward.forward(h, context)
        h, dropout2_cache = self.dropout2.forward(h, context)
        x = x + h
        return x, BlockCache(
            norm1_cache, self_attention_cache, dropout1_cache, norm2_cache, feed_forward_cache, dropout2_cache
        )

    def backward(self, dy: Array, cache: BlockCache) -> Array:
        """Return dx, of shape (B, T, D)."""
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
class GPTCache(NamedTuple):
    """The cache of GPT, with one entry for each of its parts."""

    embedding: InputCache
    layers: tuple[BlockCache, ...]
    norm: NormCache
    output: Any  # a LinearCache, or None without a head


class GPT(GPTDecoding, Module):
    """A decoder-only Transformer, which predicts the next token from the tokens before it.

    Shapes: ids (B, T) integers -> logits (B, T, V). The logits at position t are those of token t + 1.
    Without a head, the output is that of the last norm, (B, T, D).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If ids are outside the vocabulary, or if there are none or more than the context.

    Source: Radford et al. 2019, section 2.3; Touvron et al. 2023, section 2.2 (the parts of Llama).
    """

    def __init__(
        self, config: GPTConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.config = config
        self.embedding = InputEmbedding(
            config.vocab_size,
            config.d_model,
            config.context,
            positions="learned" if config.positions == "learned" else "none",
            scale=False,
            dropout=config.dropout,
            rng=rng,
            dtype=dtype,
        )
        self.layers = self.make_layers(rng, dtype)
        self.norm = make_norm(config, dtype)
        self.output = _make_output(config, self.embedding.tokens.weight, rng, dtype) if config.head else None
        if rng is not UNDRAWN:
            self._draw_weights(rng)
        self.flatten()

    def make_layers(self, rng: np.random.Generator, dtype: Any) -> list[Any]:
        """Return the layers. The families whose layers differ replace this method."""
        rotary = None if self.config.positions == "learned" else make_rotary(self.config, dtype)
        return [Block(self.config, rotary, rng, dtype) for _ in range(self.config.n_layers)]

    def forward(
        self, ids: Any, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[Array, GPTCache]:
        """Compute the logits at each position.

        Args:
            ids: The token ids, of shape (B, T).
            train: True turns dropout on.
            rng: The generator for dropout. It is needed if train is True and the dropout is not 0.

        Returns:
            The logits, of shape (B, T, V), and the cache.
        """
        ids = self._take_ids(ids)
        context = Context(train, rng)
        mask = AttentionMask(causal_mask(ids.shape[1], ids, window=self.config.window))  # (T, T)
        x, embedding_cache = self.embedding.forward(ids, context)  # (B, T, D)
        layer_caches = []
        for layer in self.layers:
            x, layer_cache = layer.forward(x, mask, context)
            layer_caches.append(layer_cache)
        x, norm_cache = self.norm.forward(x)
        logits, output_cache = (x, None) if self.output is None else self.output.forward(x)  # (B, T, V)
        return logits, GPTCache(embedding_cache, tuple(layer_caches), norm_cache, output_cache)

    def backward(self, dlogits: Array, cache: GPTCache) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient.

        Shapes: dlogits (B, T, V).
        """
        # logits = output(norm(x)), after all layers
        dx = dlogits if self.output is None else self.output.backward(dlogits, cache.output)  # (B, T, D)
        dx = self.norm.backward(dx, cache.norm)
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            dx = layer.backward(dx, layer_cache)
        self.embedding.backward(dx, cache.embedding)

    def _draw_weights(self, rng: np.random.Generator) -> None:
        """Draw the matrices anew from the normal distribution, as GPT-2 does.

        The last linear map of a sublayer gets a smaller standard deviation: 2 n_layers of their outputs are
        added, and so the sum has about the variance of one sublayer.
        """
        for name, parameter in self.named_parameters():
            if parameter.value.ndim == 1:
                continue
            is_last = name.startswith("layers.") and name.endswith(("output.weight", "outer.weight"))
            std = INITIAL_STD / math.sqrt(2 * self.config.n_layers) if is_last else INITIAL_STD
            parameter.value[...] = normal(rng, parameter.shape, std, parameter.value.dtype)

    def _take_ids(self, ids: Any, start: int = 0) -> Array:
        c = self.config
        return take_ids(ids, c.vocab_size, c.context, "ids", self.reference, start=start)


def _make_output(config: GPTConfig, tokens: Parameter, rng: np.random.Generator, dtype: Any) -> Any:
    """Return the map to the logits, which shares the table of token vectors if config.tied."""
    if config.tied:
        return TiedProjection(tokens)
    return Linear(config.d_model, config.vocab_size, bias=False, rng=rng, dtype=dtype)


def make_norm(config: GPTConfig, dtype: Any) -> Any:
    """Return the norm of a configuration, a LayerNorm or an RMSNorm."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, eps=config.norm_eps, dtype=dtype)
    return LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias, dtype=dtype)


def make_attention(
    config: GPTConfig,
    rotary: RotaryPositions | None,
    rng: np.random.Generator,
    dtype: Any,
    kind: Callable[..., MultiHeadAttention] = MultiHeadAttention,
) -> MultiHeadAttention:
    """Return the self-attention of a configuration.

    Args:
        config: The configuration.
        rotary: The rotation of queries and keys, or None.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        kind: Its class, or a function that makes one.
    """
    return kind(
        config.d_model,
        config.n_heads,
        n_kv_heads=config.n_kv_heads,
        d_head=config.head_dim,
        bias=config.has_qkv_bias,
        output_bias=config.bias,
        fused="qkv",
        dropout=config.dropout,
        rotary=rotary,
        rng=rng,
        dtype=dtype,
    )


def make_feed_forward(config: GPTConfig, rng: np.random.Generator, dtype: Any) -> Any:
    """Return a FeedForward or a GatedFeedForward. With Any, backward takes the cache of either one.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    kind: type[FeedForward | GatedFeedForward] = GatedFeedForward if config.is_gated else FeedForward
    return kind(
        config.d_model,
        config.hidden_width,
        activation=config.activation,
        bias=config.bias,
        rng=rng,
        dtype=dtype,
    )


def make_rotary(config: GPTConfig, dtype: Any) -> RotaryPositions:
    """Return the rotation of queries and keys of a configuration."""
    return RotaryPositions(
        config.context,
        config.d_head,
        base=config.rotary_base,
        layout=config.rotary_layout,
        scaling=config.scaling,
        dtype=dtype,
    )
