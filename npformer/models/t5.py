"""T5: an encoder-decoder Transformer without any positions but a learned bias of the scores.

    encoder:  x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))
    decoder:  the same, with x = x + cross_attention(norm(x), memory) between
    scores:   q kᵀ + bias[bucket of the distance], in self-attention; q kᵀ in cross-attention
    logits = (D^-1/2 norm(x)) tokensᵀ, or norm(x) output in T5 1.1 and Flan-T5

The layers are those with the norm before each sublayer, from other parts: RMS norms, no biases, scores that
are not divided by sqrt(K), and in T5 1.1 a gated feed-forward network. All layers of a stack share one table
of the bias, which is the only thing that tells positions apart.

In training, the dropout behind the last norm of each stack is left out.

Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1; Shazeer 2020 (T5 1.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from npformer.backend import Array
from npformer.errors import Registry, UserError
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.models.settings import registry
from npformer.models.transformer import (
    Decoder,
    Encoder,
    PreNormDecoderLayer,
    PreNormEncoderLayer,
    Transformer,
    TransformerConfig,
)
from npformer.models.transformer.config import CHOICES
from npformer.models.transformer.layers import layer_from_parts, make_attention
from npformer.nn import Dropout, FeedForward, GatedFeedForward, Linear, RMSNorm, TiedProjection
from npformer.nn.attention import BucketedAttention
from npformer.nn.attention.bucketed import check_buckets
from npformer.nn.module import Module, Parameter

# the settings of a Transformer for which a T5 has one value
FIXED = [
    *("norm", "final_norm", "tied", "positions", "zero_padding", "scale_embedding", "output_bias", "d_value"),
    *("attention_bias", "attention_output", "projection_activation", "mask_fill", "query_masking"),
]


@dataclass(frozen=True)
class T5Config(TransformerConfig):
    """The settings of a T5: those of a Transformer with the defaults of the family, and those of the bias."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of T5", {})
    choices: ClassVar[Mapping[str, Sequence[str]]] = CHOICES | {
        "activation": (*CHOICES["activation"], *GATED_ACTIVATIONS),
    }

    norm: str = "pre"
    norm_eps: float = 1e-6
    final_norm: bool = True
    positions: str = "none"  # nothing is added to the embeddings
    max_length: int = 2**15  # no table depends on it: the memory is the limit
    scale_embedding: bool = False
    attention_bias: bool = False
    scale_scores: bool = False
    fused_projections: bool = True
    n_buckets: int = 32
    max_distance: int = 128
    own_output: bool = False  # True if the output has a matrix of its own; the source and target share theirs
    scale_output: bool = True  # divide the input of the output by sqrt(D)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in FIXED:
            default = getattr(type(self), name)
            if getattr(self, name) != default:
                raise UserError(
                    f"{name} is {getattr(self, name)!r}, and every T5 has {default!r}: leave it out"
                )
        check_buckets(self.n_buckets, self.max_distance)


class ScaledOutput(Module):
    """An output layer whose input is multiplied by a factor: y = output(factor x).

    Shapes: x (..., D) -> y (..., V).

    Args:
        output: The output layer.
        factor: The factor.
    """

    def __init__(self, output: Linear | TiedProjection, factor: float) -> None:
        self.output, self.factor = output, factor

    def forward(self, x: Array) -> tuple[Array, Any]:
        """Return y, of shape (..., V), and the cache."""
        y, cache = self.output.forward(x * self.factor)
        return y, (cache,)  # a cache of its own, by which the explorer tells this layer from the one inside

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of shape (..., D)."""
        # y = output(factor x)
        dx: Array = self.output.backward(dy, cache[0]) * self.factor
        return dx


class T5(Transformer):
    """A Transformer with the parts of T5. Shapes: source (B, S), target_in (B, T) -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    config: T5Config

    def make_encoder(self, rng: np.random.Generator, dtype: Any) -> Encoder:
        """Return the encoder."""
        layers = self._layers(PreNormEncoderLayer, self.config.n_layers, rng, dtype)
        return layer_from_parts(Encoder, layers=layers, norm=self._norm(dtype))

    def make_decoder(self, rng: np.random.Generator, dtype: Any) -> Decoder:
        """Return the decoder."""
        layers = self._layers(PreNormDecoderLayer, self.config.n_decoder_layers, rng, dtype)
        return layer_from_parts(Decoder, layers=layers, norm=self._norm(dtype))

    def make_output(self, rng: np.random.Generator, dtype: Any) -> Any:
        """Return the output layer."""
        c = self.config
        output: Any = TiedProjection(self.target.tokens.weight, dtype=dtype)
        if c.own_output:
            output = Linear(c.d_model, c.target_vocab, bias=False, rng=rng, dtype=dtype)
        return ScaledOutput(output, 1 / math.sqrt(c.d_model)) if c.scale_output else output

    def _layers(self, kind: Any, n_layers: int, rng: np.random.Generator, dtype: Any) -> list[Any]:
        """Return the layers of the encoder or the decoder, which share the table of their bias."""
        layers: list[Any] = []
        for _ in range(n_layers):
            table = layers[0].self_attention.table if layers else None
            layers.append(self._layer(kind, table, rng, dtype))
        return layers

    def _layer(self, kind: Any, table: Parameter | None, rng: np.random.Generator, dtype: Any) -> Any:
        """Return a layer of the encoder or the decoder."""
        c, is_decoder = self.config, kind is PreNormDecoderLayer
        attention = BucketedAttention(
            c.d_model,
            c.n_heads,
            d_head=c.head_key,
            bias=False,
            fused="qkv" if c.fused_projections else "no",
            dropout=c.attention_dropout,
            scale=c.scale_scores,
            n_buckets=c.n_buckets,
            max_distance=c.max_distance,
            both_sides=not is_decoder,
            table=table,
            rng=rng,
            dtype=dtype,
        )
        parts = {"self_attention": attention, "norm1": self._norm(dtype), "dropout1": Dropout(c.dropout)}
        if is_decoder:
            parts |= {"cross": make_attention(c, "kv", rng, dtype)}
            parts |= {"norm2": self._norm(dtype), "dropout2": Dropout(c.dropout)}
        gated = c.activation in GATED_ACTIVATIONS
        settings: Any = {"activation": c.activation, "dropout": c.feed_forward_dropout, "bias": False}
        feed_forward = GatedFeedForward if gated else FeedForward
        parts["feed_forward"] = feed_forward(c.d_model, c.d_ff, **settings, rng=rng, dtype=dtype)
        last = 3 if is_decoder else 2
        return layer_from_parts(
            kind, **parts, **{f"norm{last}": self._norm(dtype), f"dropout{last}": Dropout(c.dropout)}
        )

    def _norm(self, dtype: Any) -> RMSNorm:
        return RMSNorm(self.config.d_model, eps=self.config.norm_eps, dtype=dtype)
