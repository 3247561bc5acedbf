"""GPT, a decoder-only model, with the parts of 2019 or of today. It predicts the next token.

    logits = output(norm(block_n(... block_1(embedding(ids)))))
    block:  x = x + attention(norm(x)),  x = x + feed_forward(norm(x))

There is no encoder and no cross-attention. A causal mask lets each token attend to itself and to the tokens
before it, so one forward pass trains the predictions at all positions. GPTConfig chooses the parts: those of
GPT-2 (layer norm, learned positions, GELU) or those of Llama (RMS norm, rotary positions, SwiGLU, key heads
that are shared by several query heads).

CausalLanguageModel, at the end, is an older sibling: it is made of the encoder layers of the translator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from npformer.backend import Array, like
from npformer.errors import Registry, UserError
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.caches import cache_class
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.functional.ids import take_ids
from npformer.functional.masks import causal_mask
from npformer.functional.rotary import ROTARY_LAYOUTS, Llama3Scaling
from npformer.models.settings import ModelSettings
from npformer.models.transformer.language_model import LanguageModel
from npformer.nn import (
    FeedForward,
    GatedFeedForward,
    InputEmbedding,
    LayerNorm,
    Linear,
    MultiHeadAttention,
    PreallocatedKVCache,
    PreNormResidual,
    RMSNorm,
    RotaryPositions,
    TiedProjection,
)
from npformer.nn.context import AttentionMask, Context
from npformer.nn.embedding import InputCache
from npformer.nn.init import UNDRAWN, default_rng, normal
from npformer.nn.module import Module
from npformer.nn.residual import PreNormCache
from npformer.storage.validation import (
    is_number,
    require_choice,
    require_count,
    require_flags,
    require_index,
    require_share,
)

INITIAL_STD = 0.02  # the standard deviation of the initial weights, as in GPT-2

COUNTS = ("vocab_size", "d_model", "n_layers", "n_heads", "context", "rotary_original_context")
COUNTS_OR_NONE = ("n_kv_heads", "head_dim", "d_ff", "window")
POSITIVE = ("norm_eps", "rotary_base", "rotary_factor", "rotary_low_factor", "rotary_high_factor")
CHOICES: dict[str, tuple[str, ...]] = {
    "norm": ("layer", "rms"),
    "positions": ("learned", "rotary"),
    "rotary_layout": ROTARY_LAYOUTS,
    "rotary_scaling": ("none", "llama3"),
    "activation": (*ACTIVATIONS, *GATED_ACTIVATIONS),
}


@dataclass(frozen=True)
class GPTConfig(ModelSettings):
    """The settings of a GPT. The defaults are those of GPT-2 with 124 million parameters.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    reads: ClassVar[str] = "text"
    later: ClassVar[Mapping[str, Any]] = {
        "head_dim": None,
        "rotary_scaling": "none",
        "rotary_factor": 8.0,
        "rotary_low_factor": 1.0,
        "rotary_high_factor": 4.0,
        "rotary_original_context": 8192,
    }

    vocab_size: int = 50257
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    n_kv_heads: int | None = None  # heads of keys and values, shared by the query heads; None means n_heads
    head_dim: int | None = None  # the width of a head; None means d_model / n_heads
    d_ff: int | None = None  # None means 4 d_model, or 8/3 d_model with a gated activation: as many weights
    context: int = 1024  # the largest number of tokens that the model reads

    norm: str = "layer"  # "layer" or "rms"
    norm_eps: float = 1e-5
    positions: str = "learned"  # "learned" or "rotary"
    rotary_base: float = 10000.0
    rotary_layout: str = "halves"  # "halves" or "interleaved"
    rotary_scaling: str = "none"  # "llama3" reads longer texts, with the four settings of Llama3Scaling
    rotary_factor: float = 8.0
    rotary_low_factor: float = 1.0
    rotary_high_factor: float = 4.0
    rotary_original_context: int = 8192
    activation: str = "gelu_tanh"  # one of ACTIVATIONS, or "swiglu" or "geglu"
    window: int | None = None  # a token attends to itself and the window - 1 tokens before it; None: to all
    bias: bool = True  # biases in linear maps and layer norms
    qkv_bias: bool | None = None  # biases of queries, keys and values; None means bias. Qwen2 has no others
    tied: bool = True  # output and embedding share a weight

    dropout: float = 0.0  # of embeddings, attention weights and the outputs of sublayers
    label_smoothing: float = 0.0
    pad_id: int | None = None  # the id of padding after the end, which has no loss; None without padding

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            require_choice(name, getattr(self, name), choices)
        for name in COUNTS:
            require_count(name, getattr(self, name))
        for name in COUNTS_OR_NONE:
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        require_flags(self)
        if self.qkv_bias is not None and not isinstance(self.qkv_bias, bool):
            raise UserError(f"qkv_bias is {self.qkv_bias!r}: it must be True, False or None")
        for name in ("dropout", "label_smoothing"):
            require_share(name, getattr(self, name))
        for name in POSITIVE:
            if not (is_number(getattr(self, name)) and 0 < getattr(self, name) < math.inf):
                raise UserError(f"{name} is {getattr(self, name)!r}: it must be a number above 0")
        if self.pad_id is not None:
            require_index("pad_id", self.pad_id)
        self._require_heads()

    def _require_heads(self) -> None:
        """Check that the width can be divided among the heads, and the query heads among the key heads."""
        if self.head_dim is None and self.d_model % self.n_heads:
            raise UserError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: change one of them, or "
                "give head_dim"
            )
        if self.n_heads % self.key_heads:
            raise UserError(
                f"n_heads {self.n_heads} is not divisible by n_kv_heads {self.key_heads}: change one of them"
            )
        if self.positions == "rotary" and self.d_head % 2:
            raise UserError(
                f"rotary positions rotate pairs of numbers, and a head is {self.d_head} wide: change d_model "
                "or n_heads"
            )
        if not self.rotary_low_factor < self.rotary_high_factor:
            raise UserError(
                f"rotary_low_factor is {self.rotary_low_factor}: it must be below rotary_high_factor, "
                f"{self.rotary_high_factor}"
            )

    @property
    def d_head(self) -> int:
        """The width K of a head."""
        return self.d_model // self.n_heads if self.head_dim is None else self.head_dim

    @property
    def scaling(self) -> Llama3Scaling | None:
        """The change of the angles of rotary positions, or None."""
        if self.rotary_scaling == "none":
            return None
        return Llama3Scaling(
            self.rotary_factor,
            self.rotary_low_factor,
            self.rotary_high_factor,
            self.rotary_original_context,
        )

    @property
    def key_heads(self) -> int:
        """The number G of heads of keys and values."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def has_qkv_bias(self) -> bool:
        """True if queries, keys and values have biases."""
        return self.bias if self.qkv_bias is None else self.qkv_bias

    @property
    def is_gated(self) -> bool:
        """True if the feed-forward network has a gated activation."""
        return self.activation in GATED_ACTIVATIONS

    @property
    def hidden_width(self) -> int:
        """The width F of the hidden layer of the feed-forward network."""
        if self.d_ff is not None:
            return self.d_ff
        return 8 * self.d_model // 3 if self.is_gated else 4 * self.d_model

    # the names that other models have for the same settings

    @property
    def max_length(self) -> int:
        """The largest number of tokens that the model reads."""
        return self.context

    @property
    def target_vocab(self) -> int:
        """The number of tokens among which the model chooses the next one."""
        return self.vocab_size

    @property
    def least_parameters(self) -> int:
        """A number of parameters that the model has at least, without building it: here, their number."""
        return self.count_parameters()

    def count_parameters(self) -> int:
        """Return the number of parameters of the model, without building it."""
        d, f, bias = self.d_model, self.hidden_width, int(self.bias)
        queries, keys = self.n_heads * self.d_head, self.key_heads * self.d_head
        norm = d * (1 + (bias if self.norm == "layer" else 0))
        attention = 2 * d * (queries + keys) + bias * d + int(self.has_qkv_bias) * (queries + 2 * keys)
        n_inner = 2 if self.is_gated else 1  # linear maps from D to F
        feed_forward = (n_inner + 1) * d * f + bias * (n_inner * f + d)
        tables = self.vocab_size * d * (1 if self.tied else 2)
        positions = self.context * d if self.positions == "learned" else 0
        return tables + positions + self.n_layers * (attention + feed_forward + 2 * norm) + norm

    @classmethod
    def preset(cls, name: str, **changes: Any) -> GPTConfig:
        """Return the configuration with this name in GPT_PRESETS, with some settings changed.

        Raises:
            UserError: If the name or a setting is unknown, or if the settings are impossible.
        """
        return cls().replace(**(GPT_PRESETS.find(name) | changes))


# the settings that differ from the defaults
GPT_PRESETS: Registry[dict[str, Any]] = Registry("preset of GPT")
GPT_PRESETS.register("gpt2", {})
GPT_PRESETS.register("gpt2-medium", {"d_model": 1024, "n_layers": 24, "n_heads": 16})
# nanoGPT's settings for the characters of Tiny Shakespeare, on a GPU and on a CPU
_SHAKESPEARE = {"vocab_size": 65, "activation": "gelu", "bias": False}
GPT_PRESETS.register(
    "nanogpt-shakespeare",
    _SHAKESPEARE | {"d_model": 384, "n_layers": 6, "n_heads": 6, "context": 256, "dropout": 0.2},
)
GPT_PRESETS.register("small", _SHAKESPEARE | {"d_model": 128, "n_layers": 4, "n_heads": 4, "context": 64})
# the parts of Llama 2 and 3
_LLAMA = {"vocab_size": 65, "norm": "rms", "positions": "rotary", "activation": "swiglu", "bias": False}
GPT_PRESETS.register(  # in the size of nanogpt-shakespeare
    "llama-style",
    _LLAMA
    | {
        "d_model": 384,
        "n_layers": 6,
        "n_heads": 6,
        "n_kv_heads": 2,
        "context": 256,
        "tied": False,
        "dropout": 0.2,
    },
)
GPT_PRESETS.register(  # for minutes on two cores
    "gpt-shakespeare", _LLAMA | {"d_model": 128, "n_layers": 4, "n_heads": 4, "d_ff": 352, "context": 128}
)
GPT_PRESETS.register(  # for an hour on two cores
    "gpt-shakespeare-long",
    _LLAMA | {"d_model": 256, "n_layers": 6, "n_heads": 4, "d_ff": 688, "context": 128, "dropout": 0.2},
)


@cache_class
class BlockCache(NamedTuple):
    """The cache of Block."""

    attention_residual: PreNormCache
    feed_forward_residual: PreNormCache

    @property
    def self_attention(self) -> Any:
        """The cache of self-attention, a MultiHeadCache."""
        return self.attention_residual.sublayer

    @property
    def feed_forward(self) -> Any:
        """The cache of the feed-forward network."""
        return self.feed_forward_residual.sublayer


class Block(Module):
    """A layer of GPT: causal self-attention and a feed-forward network, each with the norm before it.

    Shapes: x (B, T, D) -> y (B, T, D).

    Args:
        config: The configuration.
        rotary: The rotation that all layers share, or None with learned positions.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Radford et al. 2019, section 2.3.
    """

    def __init__(
        self, config: GPTConfig, rotary: RotaryPositions | None, rng: np.random.Generator, dtype: Any
    ) -> None:
        self.attention = MultiHeadAttention(
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
        self.attention_residual = _make_residual(config, dtype)
        feed_forward: type[FeedForward | GatedFeedForward] = (
            GatedFeedForward if config.is_gated else FeedForward
        )
        self.feed_forward = feed_forward(
            config.d_model,
            config.hidden_width,
            activation=config.activation,
            bias=config.bias,
            rng=rng,
            dtype=dtype,
        )
        self.feed_forward_residual = _make_residual(config, dtype)

    def forward(self, x: Array, mask: AttentionMask, context: Context) -> tuple[Array, Any]:
        """Compute self-attention, then the feed-forward network.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            mask: The causal mask.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        x, attention_residual = self.attention_residual.forward(
            x, lambda h: self.attention.forward(h, mask=mask, context=context), context
        )
        x, feed_forward_residual = self.feed_forward_residual.forward(
            x, lambda h: self.feed_forward.forward(h, context), context
        )
        return x, BlockCache(attention_residual, feed_forward_residual)

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of shape (B, T, D)."""
        dx = self.feed_forward_residual.backward(dy, cache.feed_forward_residual, self.feed_forward.backward)
        return self.attention_residual.backward(dx, cache.attention_residual, self.attention.backward)

    def decode_step(self, x: Array, kv_cache: PreallocatedKVCache, mask: Array | None) -> Array:
        """Compute the next T positions, without a cache for a backward pass.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            kv_cache: The keys and values of the S positions before, to which those of x are added.
            mask: Bool, broadcastable to (B, H, T, S + T). True means that the query may attend to the key.
                None means that all queries may attend to all keys.

        Returns:
            y, of shape (B, T, D).
        """
        x, _ = self.attention_residual.forward(x, lambda h: self.attention.decode_step(h, kv_cache, mask))
        x, _ = self.feed_forward_residual.forward(x, self.feed_forward.forward)
        return x


@cache_class
class GPTCache(NamedTuple):
    """The cache of GPT, with one entry for each of its parts."""

    embedding: InputCache
    layers: tuple[BlockCache, ...]
    norm: Any
    output: Any


class GPT(Module):
    """A decoder-only Transformer, which predicts the next token from the tokens before it.

    Shapes: ids (B, T) integers -> logits (B, T, V). The logits at position t are those of token t + 1.

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
        learned = config.positions == "learned"
        self.embedding = InputEmbedding(
            config.vocab_size,
            config.d_model,
            config.context,
            positions="learned" if learned else "none",
            scale=False,
            dropout=config.dropout,
            rng=rng,
            dtype=dtype,
        )
        rotary = None if learned else _make_rotary(config, dtype)
        self.layers = [Block(config, rotary, rng, dtype) for _ in range(config.n_layers)]
        self.norm = _make_norm(config, dtype)
        self.output: TiedProjection | Linear = (
            TiedProjection(self.embedding.tokens.weight)
            if config.tied
            else Linear(config.d_model, config.vocab_size, bias=False, rng=rng, dtype=dtype)
        )
        if rng is not UNDRAWN:
            self._draw_weights(rng)
        self.flatten()

    def forward(
        self, ids: Any, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[Array, Any]:
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
        x, embedding = self.embedding.forward(ids, context)  # (B, T, D)
        layers = []
        for layer in self.layers:
            x, cache = layer.forward(x, mask, context)
            layers.append(cache)
        x, norm = self.norm.forward(x)
        logits, output = self.output.forward(x)  # (B, T, V)
        return logits, GPTCache(embedding, tuple(layers), norm, output)

    def backward(self, dlogits: Array, cache: Any) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient."""
        dx = self.output.backward(dlogits, cache.output)  # (B, T, D)
        dx = self.norm.backward(dx, cache.norm)
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            dx = layer.backward(dx, layer_cache)
        self.embedding.backward(dx, cache.embedding)

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

        Returns:
            The logits after the last token, of shape (B, V), and the KV cache, which is extended in place.

        Raises:
            UserError: If ids are outside the vocabulary, if there are more tokens than the context, or if
                the KV cache holds another number of tokens than start.
        """
        ids = self._take_ids(ids if np.ndim(ids) > 1 else ids[:, None], int(np.max(start)))  # (B, T)
        kv_cache = self.empty_kv_cache() if kv_cache is None else kv_cache
        if not np.array_equal(kv_cache[0].length, start):
            raise UserError(
                f"start is {start}, and the KV cache holds {kv_cache[0].length} tokens: make them equal"
            )
        mask = self._step_mask(ids, start)
        x, _ = self.embedding.forward(ids, start=start)  # (B, T, D)
        for layer, layer_kv_cache in zip(self.layers, kv_cache, strict=True):
            x = layer.decode_step(x, layer_kv_cache, mask)
        if lengths is None:
            x = x[:, -1]  # (B, D) the last token predicts the next one
        else:
            x = x[like(np.arange(len(x)), x), like(lengths - 1, x)]
            for layer_kv_cache in kv_cache:
                layer_kv_cache.length = start + lengths  # forget the padding
        x, _ = self.norm.forward(x)
        logits, _ = self.output.forward(x)  # (B, V)
        return logits, kv_cache

    def _step_mask(self, ids: Array, start: int | Array) -> Array | None:
        """Return the mask of a step of decoding, or None if its only token attends to all keys."""
        if ids.shape[1] == 1 and self.config.window is None and isinstance(start, int):
            return None
        return causal_mask(ids.shape[1], ids, window=self.config.window, start=start)

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


def _make_norm(config: GPTConfig, dtype: Any) -> LayerNorm | RMSNorm:
    """Return the norm of a configuration."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, eps=config.norm_eps, dtype=dtype)
    return LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias, dtype=dtype)


def _make_residual(config: GPTConfig, dtype: Any) -> PreNormResidual:
    """Return the residual connection of a configuration."""
    return PreNormResidual(
        config.d_model, dropout=config.dropout, norm=_make_norm(config, dtype), dtype=dtype
    )


def _make_rotary(config: GPTConfig, dtype: Any) -> RotaryPositions:
    """Return the rotation of queries and keys of a configuration."""
    return RotaryPositions(
        config.context,
        config.d_head,
        base=config.rotary_base,
        layout=config.rotary_layout,
        scaling=config.scaling,
        dtype=dtype,
    )


class CausalLanguageModel(LanguageModel):
    """A decoder without an encoder, which predicts the next token from the tokens before it.

    Without an encoder there is no cross-attention. So each layer consists of self-attention and a
    feed-forward network, like an encoder layer, but with a causal mask. Arguments, shapes and errors: as in
    LanguageModel.

    Source: Radford et al. 2018, section 3.1; Liu et al. 2018.
    """

    def mask(self, ids: Any) -> AttentionMask:
        """Return the AttentionMask that allows a token to attend to itself and to the tokens before it."""
        mask = super().mask(ids)
        return replace(mask, allowed=mask.allowed & causal_mask(ids.shape[1], ids))  # (B, 1, T, T)

    def decode_step(self, ids: Any, start: int, kv_cache: Any) -> tuple[Array, Any]:
        """Compute the logits of the next token from the last token and the KV cache.

        Args:
            ids: The last token of each sentence, of shape (B,).
            start: The position of these tokens.
            kv_cache: The KV cache that the previous call returned, or None at the first position.

        Returns:
            The logits, of shape (B, V), and the new KV cache.

        Raises:
            UserError: If ids are outside the vocabulary, or if the sentence becomes longer than max_length.
        """
        x, _ = self.embedding.forward(self._take_ids(ids[:, None], start), start=start)  # (B, 1, D)
        x, kv_cache = self.encoder.decode_step(x, kv_cache)
        logits, _ = self.output.forward(x)  # (B, 1, V)
        return logits[:, 0], kv_cache
