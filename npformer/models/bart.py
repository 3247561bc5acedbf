"""BART and mBART: the Transformer of 2017 with learned positions and with a norm of its input.

    x = dropout(norm(tokens[ids] + positions)),  for the encoder and for the decoder
    BART:   x = norm(x + sublayer(x)), as in the paper
    mBART:  x = x + sublayer(norm(x)), and a norm after the last layer of each stack

The layers are those of the Transformer (`norm="post"` or `norm="pre"`), so they are not here. One
table of tokens serves encoder, decoder and output. BART decodes from the end symbol; mBART decodes from that
or from the code of a language.

Source: Lewis et al. 2020, "BART", section 2; Liu et al. 2020, "Multilingual Denoising Pre-training", 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import Registry
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.norm import LayerNormCache
from npformer.models.settings import registry
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.nn import Dropout, Embedding, LayerNorm, LearnedPositions
from npformer.nn.context import INFERENCE, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.init import default_rng
from npformer.nn.module import Module


@dataclass(frozen=True)
class BartConfig(TransformerConfig):
    """The settings of a BART: those of a Transformer, with the defaults of the family."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of BART", {})
    starts_with_end: ClassVar[bool] = True
    fixed: ClassVar[Sequence[str]] = ("positions", "zero_padding")

    activation: str = "gelu"
    positions: str = "learned"
    scale_embedding: bool = False
    output_bias: bool = True
    fused_projections: bool = True


@cache_class
class BartInputCache(NamedTuple):
    """The cache of BartInput."""

    tokens: EmbeddingCache
    positions: Any
    norm: LayerNormCache
    dropout_mask: DropoutCache  # (B, T, D), or None
    y: Array  # (B, T, D) the output


class BartInput(Module):
    """The input of an encoder or a decoder: y = dropout(norm(tokens[ids] + positions)).

    Shapes: ids (B, T) -> y (B, T, D).

    Args:
        vocab_size: The number of tokens.
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        vocab_size: int,
        config: BartConfig,
        *,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        rng, d_model = default_rng(rng), config.d_model
        scale = math.sqrt(d_model) if config.scale_embedding else 1.0
        self.tokens = Embedding(vocab_size, d_model, scale=scale, rng=rng, dtype=dtype)
        self.positions = LearnedPositions(config.max_length, d_model, rng=rng, dtype=dtype)
        self.norm = LayerNorm(d_model, eps=config.norm_eps, dtype=dtype)
        self.dropout = Dropout(config.input_dropout)

    def forward(
        self, ids: Array, context: Context = INFERENCE, *, start: int | Array = 0
    ) -> tuple[Array, BartInputCache]:
        """Compute the input, with dropout.

        Args:
            ids: The token ids, of shape (B, T).
            context: The settings of the forward pass.
            start: The position of the first id in its sentence: one number for all sentences, or an array
                (B,) on the host with one number for each sentence.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        x, tokens_cache = self.tokens.forward(ids)  # (B, T, D)
        p, positions_cache = self.positions.forward(ids.shape[1], start)  # (T, D)
        x, norm_cache = self.norm.forward(x + p)
        y, dropout_mask = self.dropout.forward(x, context)
        return y, BartInputCache(tokens_cache, positions_cache, norm_cache, dropout_mask, y)

    def backward(self, dy: Array, cache: BartInputCache) -> None:
        """Accumulate the gradients of both tables and of the norm. Shapes: dy (B, T, D)."""
        # y = dropout(norm(tokens + positions))
        dx = self.dropout.backward(dy, cache.dropout_mask)
        dx = self.norm.backward(dx, cache.norm)
        # a sum passes its gradient to both terms
        self.positions.backward(dx, cache.positions)
        self.tokens.backward(dx, cache.tokens)


class Bart(Transformer):
    """A Transformer with the inputs of BART. Shapes: source (B, S), target_in (B, T) -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    config: BartConfig

    def make_input(self, vocab_size: int, rng: np.random.Generator, dtype: Any) -> BartInput:
        """Return the input of the encoder or the decoder.

        Args:
            vocab_size: The number of tokens.
            rng: The generator of the initial values.
            dtype: The dtype of the parameters.
        """
        return BartInput(vocab_size, self.config, rng=rng, dtype=dtype)
