"""BERT, an encoder-only model. It predicts tokens that are hidden in its input from those on both sides.

    x = dropout(norm(tokens[ids] + positions + segments[segment_ids]))
    logits = head(encoder(x))
    head:  logits = norm(gelu(h weight + bias)) tokensᵀ + output bias

The encoder is that of the Transformer, with the norm after each sublayer. Every token attends to every other
token, but not to padding. Nothing hides the next tokens, so a BERT cannot write a text as a GPT does: it is
trained to find hidden tokens, and `npformer fill` asks it for them.

A BERT that was trained further has another head, which chooses a class for a text or for each token (see
classifier.py), or none: then its output is that of the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from npformer.backend import Array, array_module, like
from npformer.errors import Registry, UserError, quantity
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.ids import as_ids, take_ids
from npformer.functional.linear import LinearCache
from npformer.functional.masks import padding_mask
from npformer.functional.norm import LayerNormCache
from npformer.kernels import activation_dropout, activation_dropout_backward
from npformer.models.classifier import CLASSIFIERS, HIDDEN, ClassifierHead
from npformer.models.encoder import EncoderConfig, EncoderModel, EncoderModelCache
from npformer.models.settings import registry
from npformer.models.transformer.stacks import Encoder
from npformer.nn import Dropout, Embedding, LayerNorm, LearnedPositions, Linear, TiedProjection
from npformer.nn.context import INFERENCE, AttentionMask, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.init import UNDRAWN, default_rng, normal
from npformer.nn.module import Module, Parameter

HEADS = ("tokens", "none", *CLASSIFIERS)

INITIAL_STD = 0.02  # the standard deviation of the initial weights

# the settings that differ from the defaults
BERT_PRESETS = registry(
    "preset of BERT",
    {
        "bert-base": {},
        "bert-large": {"d_model": 1024, "n_layers": 24, "n_heads": 16},
        "bert-small": {  # for minutes on two cores
            "vocab_size": 1000,
            "d_model": 96,
            "n_layers": 2,
            "n_heads": 4,
            "max_length": 64,
            "dropout": 0.0,  # the model reads each sentence few times, and never with the same tokens hidden
            "attention_dropout": 0.0,
        },
    },
)


@dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The settings of a BERT. The defaults are those of BERT-base, with 110 million parameters.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    reads: ClassVar[str] = "sentences"
    named: ClassVar[Registry[dict[str, Any]]] = BERT_PRESETS
    later: ClassVar[Mapping[str, Any]] = {
        "first_position": 0,
        "head": "tokens",
        "n_classes": 2,
        "head_activation": "tanh",
    }

    vocab_size: int = 30522
    max_length: int = 512  # the largest number of tokens that the model reads
    # the parts of the input, such as two sentences, that the model can tell apart; 0 for a model without
    # vectors of segments, such as DistilBERT
    n_segments: int = 2
    # the row of the table of positions that the first token reads; from 1 on, as in RoBERTa, padding is not
    # counted, and reads the row before
    first_position: int = 0

    head: str = "tokens"  # one of HEADS
    n_classes: int = 2  # of a classifier
    head_activation: str = "tanh"  # of the hidden layer of a classifier of texts, one of HIDDEN

    label_smoothing: float = 0.0
    pad_id: int = 0  # the id of padding, to which no token attends and which has no loss

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            choices={"head": HEADS, "head_activation": tuple(HIDDEN)},
            counts=("vocab_size", "max_length", "n_classes"),
            indices=("n_segments", "pad_id", "first_position"),
            shares=("label_smoothing",),
        )

    @property
    def n_positions(self) -> int:
        """The number of rows of the table of positions."""
        return self.max_length + self.first_position

    @property
    def target_vocab(self) -> int:
        """The number of tokens among which the model chooses, by the name that other models have for it."""
        return self.vocab_size

    @property
    def least_parameters(self) -> int:
        """A number of parameters that the model has at least, without building it: here, their number."""
        return self.count_parameters()

    def count_parameters(self) -> int:
        """Return the number of parameters of the model, without building it."""
        d, f, norm = self.d_model, self.hidden_width, 2 * self.d_model
        embedding = (self.vocab_size + self.n_positions + self.n_segments) * d + norm
        attention = 4 * (d * d + d)
        feed_forward = (d * f + f) + (f * d + d)
        dense, classes = d * d + d, self.n_classes * (d + 1)
        heads = {
            "tokens": dense + norm + self.vocab_size,
            "none": 0,
            "text classes": dense + classes,
            "token classes": classes,
        }
        head = heads[self.head]
        return embedding + self.n_layers * (attention + feed_forward + 2 * norm) + head


@cache_class
class BertEmbeddingCache(NamedTuple):
    """The cache of BertEmbedding."""

    tokens: EmbeddingCache
    positions: Any
    segments: Any  # an EmbeddingCache, or None without segments
    norm: LayerNormCache
    dropout_mask: DropoutCache  # (B, T, D), or None


class BertEmbedding(Module):
    """The input of BERT: y = dropout(norm(tokens[ids] + positions + segments[segment_ids])).

    With n_segments = 0 there is no third term.
    Shapes: ids (B, T), segment_ids (B, T) -> y (B, T, D).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Devlin et al. 2019, section 3 and figure 2; Sanh et al. 2019, section 3 (without segments).
    """

    def __init__(self, config: BertConfig, rng: np.random.Generator, dtype: Any) -> None:
        d_model = config.d_model
        self.tokens = Embedding(config.vocab_size, d_model, rng=rng, dtype=dtype)
        self.pad_id, self.first_position = config.pad_id, config.first_position
        self.positions: LearnedPositions | Embedding = (
            Embedding(config.n_positions, d_model, rng=rng, dtype=dtype)
            if config.first_position
            else LearnedPositions(config.max_length, d_model, rng=rng, dtype=dtype)
        )
        self.segments = (
            Embedding(config.n_segments, d_model, rng=rng, dtype=dtype) if config.n_segments else None
        )
        self.norm = LayerNorm(d_model, eps=config.norm_eps, dtype=dtype)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, ids: Array, segment_ids: Any, context: Context = INFERENCE
    ) -> tuple[Array, BertEmbeddingCache]:
        """Compute the sum of the vectors of each token, with norm and dropout.

        Args:
            ids: The token ids, of shape (B, T).
            segment_ids: The segment of each token, of shape (B, T); None if there are no segments.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        x, tokens_cache = self.tokens.forward(ids)  # (B, T, D)
        p, positions_cache = self.positions.forward(self._positions_of(ids))  # (T, D) or (B, T, D)
        x, segments_cache = x + p, None
        if self.segments is not None:
            s, segments_cache = self.segments.forward(segment_ids)  # (B, T, D)
            x = x + s
        y, norm_cache = self.norm.forward(x)
        y, dropout_mask = self.dropout.forward(y, context)
        return y, BertEmbeddingCache(tokens_cache, positions_cache, segments_cache, norm_cache, dropout_mask)

    def _positions_of(self, ids: Array) -> Any:
        """Return what the table of positions reads: the length, or the rows of all tokens, (B, T).

        Source: Liu et al. 2019 (RoBERTa), whose code counts positions from that of padding.
        """
        if not self.first_position:
            return ids.shape[1]
        is_token = ids != self.pad_id
        return is_token.cumsum(1) * is_token + (self.first_position - 1)

    def backward(self, dy: Array, cache: BertEmbeddingCache) -> None:
        """Accumulate the gradients of the tables. Return nothing, since ids have no gradient."""
        # y = dropout(norm(x + p + s))
        dx = self.dropout.backward(dy, cache.dropout_mask)
        dx = self.norm.backward(dx, cache.norm)
        # x + p + s: a sum passes its gradient to all terms
        if self.segments is not None:
            self.segments.backward(dx, cache.segments)
        self.positions.backward(dx, cache.positions)
        self.tokens.backward(dx, cache.tokens)


@cache_class
class BertHeadCache(NamedTuple):
    """The cache of BertHead."""

    dense: LinearCache
    activation: Any
    norm: LayerNormCache
    output: LinearCache


class BertHead(Module):
    """The prediction head of BERT: logits = norm(f(x weight + bias)) tokensᵀ + output bias.

    The logits are dot products with the vectors of the tokens, as in TiedProjection. One more layer comes
    before it, so that the encoder need not end in the space of these vectors.
    Shapes: x (B, T, D) -> logits (B, T, V).

    Args:
        config: The configuration.
        tokens: The table of token vectors, of shape (V, D), which the head shares.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(self, config: BertConfig, tokens: Parameter, rng: np.random.Generator, dtype: Any) -> None:
        self.activation = config.activation
        self.dense = Linear(config.d_model, config.d_model, rng=rng, dtype=dtype)
        self.norm = LayerNorm(config.d_model, eps=config.norm_eps, dtype=dtype)
        self.output = TiedProjection(tokens, bias=True, dtype=dtype)

    def forward(self, x: Array) -> tuple[Array, BertHeadCache]:
        """Return the logits, of shape (B, T, V), and the cache."""
        h, dense_cache = self.dense.forward(x)  # (B, T, D)
        h, activation_cache = activation_dropout(h, self.activation)
        h, norm_cache = self.norm.forward(h)
        logits, output_cache = self.output.forward(h)  # (B, T, V)
        return logits, BertHeadCache(dense_cache, activation_cache, norm_cache, output_cache)

    def backward(self, dlogits: Array, cache: BertHeadCache) -> Array:
        """Return dx, of shape (B, T, D)."""
        # logits = output(norm(h))
        dh = self.output.backward(dlogits, cache.output)  # (B, T, D)
        dh = self.norm.backward(dh, cache.norm)
        # h = f(dense(x))
        dh = activation_dropout_backward(dh, cache.activation)
        return self.dense.backward(dh, cache.dense)


class Bert(EncoderModel):
    """An encoder-only Transformer, which predicts hidden tokens from the tokens on both sides.

    In the input, the id of a mask token replaces most of the hidden tokens. In the loss, only hidden tokens
    count (see npformer.data.sentences.masked_batch). BERT has a second task, next sentence prediction, which
    is left out here: models trained without it are as good (Liu et al. 2019, section 4.2).

    Shapes: ids (B, T), segment_ids (B, T) integers -> logits (B, T, V). Without a head, the output is that of
    the encoder, (B, T, D), and a classifier has logits (B, C) of a text or (B, T, C) of its tokens.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If ids are outside the vocabulary or segment ids outside the segments, if their shapes
            differ, or if there are no tokens or more than max_length.

    Source: Devlin et al. 2019, section 3.
    """

    def __init__(
        self, config: BertConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.config = config
        self.embedding = BertEmbedding(config, rng, dtype)
        self.encoder = Encoder(config.encoder, rng=rng, dtype=dtype)
        self.head = _make_head(config, self.embedding.tokens.weight, rng, dtype)
        if rng is not UNDRAWN:
            self._draw_weights(rng)
        self.flatten()

    def forward(
        self,
        ids: Any,
        segment_ids: Any = None,
        *,
        mask: Any = None,
        train: bool = False,
        rng: np.random.Generator | None = None,
    ) -> tuple[Array, EncoderModelCache]:
        """Compute the logits at each position, or the output of another head.

        Args:
            ids: The token ids, of shape (B, T).
            segment_ids: The segment of each token, of shape (B, T). None means segment 0 for all tokens; a
                model without segments takes nothing else.
            mask: Bool, (B, T), True at the tokens to which others may attend. None means all tokens whose ids
                are not that of padding.
            train: True turns dropout on.
            rng: The generator for dropout. It is needed if train is True and the dropout is not 0.

        Returns:
            The logits, of shape (B, T, V), and the cache. Other heads have other shapes; see the class.
        """
        config = self.config
        ids = take_ids(ids, config.vocab_size, config.max_length, "ids", self.reference)
        segment_ids = self._take_segment_ids(segment_ids, ids)
        context = Context(train, rng)
        keys = padding_mask(ids, config.pad_id) if mask is None else _taken_mask(mask, ids)  # (B, 1, 1, T)
        x, embedding_cache = self.embedding.forward(ids, segment_ids, context)  # (B, T, D)
        return self.forward_from(x, embedding_cache, AttentionMask(keys), context)

    def _take_segment_ids(self, segment_ids: Any, ids: Array) -> Array | None:
        """Return the checked segment ids on the device of the model, or zeros (B, T) if they are None.

        The result is None if the model has no segments.
        """
        n = self.config.n_segments
        if segment_ids is None:
            return array_module(ids).zeros_like(ids) if n else None
        if not n:
            raise UserError("segment_ids were given to a model without segments: leave them out")
        segment_ids = as_ids(segment_ids, "segment_ids")
        if segment_ids.shape != ids.shape or segment_ids.dtype.kind not in "iu":
            raise UserError(
                f"segment_ids has shape {segment_ids.shape} and dtype {segment_ids.dtype}: give an integer "
                f"for each of the ids {ids.shape}"
            )
        if not bool(((segment_ids >= 0) & (segment_ids < n)).all()):
            raise UserError(
                f"segment_ids holds numbers from {int(segment_ids.min())} to {int(segment_ids.max())}: use 0 "
                f"to {n - 1}, since the model has {quantity(n, 'segment')}"
            )
        return like(segment_ids, ids)

    def _draw_weights(self, rng: np.random.Generator) -> None:
        """Draw the matrices anew from a narrow normal distribution, as BERT does."""
        for _, parameter in self.named_parameters():
            if parameter.value.ndim > 1:
                parameter.value[...] = normal(rng, parameter.shape, INITIAL_STD, parameter.value.dtype)


def _make_head(config: BertConfig, tokens: Parameter, rng: np.random.Generator, dtype: Any) -> Any:
    """Return the head of a configuration: a BertHead, a ClassifierHead, or None."""
    if config.head == "none":
        return None
    if config.head == "tokens":
        return BertHead(config, tokens, rng, dtype)
    hidden = config.head_activation if config.head == "text classes" else None
    return ClassifierHead(config.d_model, config.n_classes, hidden=hidden, rng=rng, dtype=dtype)


def _taken_mask(mask: Any, ids: Array) -> Array:
    """Return the mask of the keys, (B, 1, 1, T), or raise UserError if it is not bool (B, T)."""
    mask = array_module(ids).asarray(mask)
    if mask.shape != ids.shape or mask.dtype != bool:
        raise UserError(
            f"mask has shape {mask.shape} and dtype {mask.dtype}: give a bool for each of the ids "
            f"{ids.shape}, True where others may attend to it"
        )
    return mask[:, None, None, :]
