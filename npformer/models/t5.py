"""T5: an encoder-decoder Transformer without any positions but a learned bias of the scores.

    encoder:  x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))
    decoder:  the same, with x = x + cross_attention(norm(x), memory) between
    scores:   q kᵀ + bias[bucket of the distance], in self-attention; q kᵀ in cross-attention
    logits = (D^-1/2 norm(x)) tokensᵀ, or norm(x) output in T5 1.1 and Flan-T5

The layers are those with the norm before each sublayer, but with RMS norms, no biases, scores that are not
divided by sqrt(K), and in T5 1.1 a gated feed-forward network. All layers of a stack share one table of the
bias, which is the only thing that tells positions apart. There is no dropout behind the last norm of a stack.

Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1; Shazeer 2020 (T5 1.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from npformer.errors import Registry
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
from npformer.models.transformer.layers import layer_from_parts, make_attention, make_feed_forward
from npformer.nn import Dropout, Linear, RMSNorm, TiedProjection
from npformer.nn.attention import BucketedAttention
from npformer.nn.attention.bucketed import check_buckets
from npformer.nn.output import ScaledOutput

# the settings of a Transformer for which a T5 has one value
FIXED = ("norm", "final_norm", "tied", "positions", "output_bias", "mask_fill", "query_masking")


@dataclass(frozen=True)
class T5Config(TransformerConfig):
    """The settings of a T5: those of a Transformer with the defaults of the family, and those of the bias."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of T5", {})
    choices: ClassVar[Mapping[str, Sequence[str]]] = CHOICES | {
        "activation": (*CHOICES["activation"], *GATED_ACTIVATIONS),
    }
    fixed: ClassVar[Sequence[str]] = FIXED

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
    own_output: bool = False  # True if the output has a matrix of its own, and not that of source and target
    scale_output: bool = True  # divide the input of the output by sqrt(D)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_buckets(self.n_buckets, self.max_distance)


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
        layers = [self._layer(PreNormEncoderLayer, rng, dtype) for _ in range(self.config.n_layers)]
        return self._stack(Encoder, layers, dtype)

    def make_decoder(self, rng: np.random.Generator, dtype: Any) -> Decoder:
        """Return the decoder."""
        layers = [self._layer(PreNormDecoderLayer, rng, dtype) for _ in range(self.config.n_decoder_layers)]
        return self._stack(Decoder, layers, dtype)

    def make_output(self, rng: np.random.Generator, dtype: Any) -> ScaledOutput:
        """Return the output layer."""
        c = self.config
        output: Any = TiedProjection(self.target.tokens.weight)
        if c.own_output:
            output = Linear(c.d_model, c.target_vocab, bias=False, rng=rng, dtype=dtype)
        return ScaledOutput(output, 1 / math.sqrt(c.d_model) if c.scale_output else 1.0)

    def _stack(self, kind: Any, layers: list[Any], dtype: Any) -> Any:
        """Return the encoder or the decoder, whose layers share the table of the first one's bias."""
        for layer in layers[1:]:
            layer.self_attention.table = layers[0].self_attention.table
        return layer_from_parts(kind, layers=layers, norm=self._norm(dtype))

    def _layer(self, kind: Any, rng: np.random.Generator, dtype: Any) -> Any:
        """Return a layer of the encoder or the decoder."""
        c, both_sides = self.config, kind is PreNormEncoderLayer
        bucketed = partial(
            BucketedAttention, n_buckets=c.n_buckets, max_distance=c.max_distance, both_sides=both_sides
        )
        sublayers: dict[str, Any] = {"self_attention": make_attention(c, "qkv", rng, dtype, bucketed)}
        if kind is PreNormDecoderLayer:
            sublayers["cross"] = make_attention(c, "kv", rng, dtype)
        sublayers["feed_forward"] = make_feed_forward(c, rng, dtype, bias=False)
        parts: dict[str, Any] = {}
        for number, (name, sublayer) in enumerate(sublayers.items(), 1):
            parts |= {
                name: sublayer,
                f"norm{number}": self._norm(dtype),
                f"dropout{number}": Dropout(c.dropout),
            }
        return layer_from_parts(kind, **parts)

    def _norm(self, dtype: Any) -> RMSNorm:
        return RMSNorm(self.config.d_model, eps=self.config.norm_eps, dtype=dtype)
