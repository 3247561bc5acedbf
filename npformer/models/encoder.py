"""EncoderModel: what the encoder-only models BERT and ViT have in common, their settings and gradients.

output = head(encoder(embedding(input)))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.caches import cache_class
from npformer.models.settings import ModelSettings
from npformer.models.transformer.config import TransformerConfig
from npformer.models.transformer.stacks import Encoder, StackCache
from npformer.nn.context import AttentionMask, Context
from npformer.nn.module import Module


@dataclass(frozen=True)
class EncoderConfig(ModelSettings):
    """The settings of the layers of an encoder-only model. The defaults are those of BERT-base.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    norm: ClassVar[str] = "post"  # "pre" for norms before the sublayers, and one after the last layer

    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    d_ff: int | None = None  # None means 4 d_model
    # "gelu" is exact, with the error function; "gelu_tanh" approximates it, as Google's later code does
    activation: str = "gelu"
    norm_eps: float = 1e-12
    dropout: float = 0.1  # of embeddings and the outputs of sublayers
    attention_dropout: float = 0.1  # of attention weights

    def __post_init__(self) -> None:
        self.require(
            choices={"activation": tuple(ACTIVATIONS)},
            counts=("d_model", "n_layers", "n_heads", "d_ff"),
            shares=("dropout", "attention_dropout"),
            positive=("norm_eps",),
        )
        if self.d_model % self.n_heads:
            raise UserError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: change one of them"
            )

    @property
    def hidden_width(self) -> int:
        """The width F of the hidden layer of the feed-forward network."""
        return 4 * self.d_model if self.d_ff is None else self.d_ff

    @property
    def encoder(self) -> TransformerConfig:
        """The settings of the encoder layers, which are those of a Transformer."""
        return TransformerConfig(
            d_model=self.d_model,
            d_ff=self.hidden_width,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            norm=self.norm,
            final_norm=self.norm == "pre",
            norm_eps=self.norm_eps,
            activation=self.activation,
            positions="none",  # the model adds them
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            fused_projections=True,
        )

    @property
    def least_parameters(self) -> int:
        """A number of parameters that the model has at least, without building it: those of its matrices."""
        return self.n_layers * self.d_model * (4 * self.d_model + 2 * self.hidden_width)


@cache_class
class EncoderModelCache(NamedTuple):
    """The cache of an EncoderModel, with one entry for each of its parts."""

    embedding: Any
    encoder: StackCache
    head: Any  # None without a head


class EncoderModel(Module):
    """The base class of encoder-only models, which make the three parts and begin the forward pass.

    Attributes:
        embedding: The layer that turns the input into vectors, of shape (B, T, D).
        encoder: The encoder.
        head: The layer after it, or None if the output is that of the encoder.
    """

    embedding: Any
    encoder: Encoder
    head: Any

    def forward_from(
        self, x: Array, embedding_cache: Any, mask: AttentionMask | None, context: Context
    ) -> tuple[Array, EncoderModelCache]:
        """Compute the encoder and the head.

        Args:
            x: The output of the embedding, of shape (B, T, D).
            embedding_cache: Its cache.
            mask: The mask of the encoder, or None if every vector attends to all others.
            context: The settings of the forward pass.

        Returns:
            The output of the head, or without a head that of the encoder, (B, T, D), and the cache.
        """
        x, encoder_cache = self.encoder.forward(x, mask, context)  # (B, T, D)
        y, head_cache = (x, None) if self.head is None else self.head.forward(x)
        return y, EncoderModelCache(embedding_cache, encoder_cache, head_cache)

    def backward(self, dy: Array, cache: EncoderModelCache) -> Any:
        """Accumulate the gradients of all parameters.

        Args:
            dy: The gradient of the output, of its shape.
            cache: The cache of forward.

        Returns:
            The gradient of an image, and None for ids, which have none.
        """
        # y = head(encoder(embedding(input)))
        dx = dy if self.head is None else self.head.backward(dy, cache.head)  # (B, T, D)
        dx = self.encoder.backward(dx, cache.encoder)
        return self.embedding.backward(dx, cache.embedding)
