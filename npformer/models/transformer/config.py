"""The settings of a Transformer, their limits, and the named architectures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from npformer.errors import Registry, UserError
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.positions import LAYOUTS
from npformer.functional.tutorial_masks import Masking
from npformer.models.settings import ModelSettings, registry
from npformer.validation import is_number, require_choice

# The settings of the paper: one vocabulary and one table for both languages, no biases in attention. With a
# vocabulary of 41,096 tokens, the numbers of parameters agree with table 3, except that of "big". No
# vocabulary size gives the printed numbers of both "big" and the other models.
PAPER: dict[str, Any] = {"tied": "all", "attention_bias": False, "source_vocab": 37000, "target_vocab": 37000}

# The settings with which the presets of four introductions to the Transformer begin: one vocabulary and one
# table for each language, and biases everywhere.
DOCUMENT: dict[str, Any] = {"tied": "none", "output_bias": True, "source_vocab": 10000, "target_vocab": 10000}

# The size that is called Transformer-Tiny: 2.6 million parameters with 10,000 subwords.
MULTI30K: dict[str, Any] = {
    "d_model": 128,
    "d_ff": 256,
    "n_heads": 4,
    "n_layers": 4,
    "norm": "pre",  # learns faster than "post": 23 BLEU after 1,000 steps, instead of 8
    "final_norm": True,
    "dropout": 0.3,
    "source_vocab": 10000,
    "target_vocab": 10000,
}

_SETTINGS: dict[str, dict[str, Any]] = {
    # for the built-in corpus, which it learns on a laptop in two minutes. The norm is before the sublayer,
    # because both directions were then learned more reliably: from French to English, with an earlier split
    # of the corpus, 99.2 and 99.6 % of the held-out sentences were translated exactly (two seeds), and 95.9 %
    # with the norm after the sublayer (one seed)
    "small": {
        "norm": "pre",
        "final_norm": True,
        "tied": "output",
        "d_model": 96,
        "d_ff": 192,
        "n_heads": 4,
        "n_layers": 2,
        "max_length": 64,
        "source_vocab": 10000,
        "target_vocab": 10000,
    },
    # with sinusoids, and with the positions of the translator that ships
    "multi30k": MULTI30K,
    "multi30k-rotary": MULTI30K | {"positions": "rotary"},
    "paper-base": PAPER,
    "paper-big": PAPER | {"d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3},
    # table 3, row (A): the number of heads, at a constant cost
    "paper-A-h1": PAPER | {"n_heads": 1},
    "paper-A-h4": PAPER | {"n_heads": 4},
    "paper-A-h16": PAPER | {"n_heads": 16},
    "paper-A-h32": PAPER | {"n_heads": 32},
    # table 3, row (B): the width of the keys
    "paper-B-dk16": PAPER | {"d_head": 16, "d_value": 64},
    "paper-B-dk32": PAPER | {"d_head": 32, "d_value": 64},
    # table 3, row (C): the size of the model
    "paper-C-N2": PAPER | {"n_layers": 2},
    "paper-C-N4": PAPER | {"n_layers": 4},
    "paper-C-N8": PAPER | {"n_layers": 8},
    "paper-C-d256": PAPER | {"d_model": 256},
    "paper-C-d1024": PAPER | {"d_model": 1024},
    "paper-C-ff1024": PAPER | {"d_ff": 1024},
    "paper-C-ff4096": PAPER | {"d_ff": 4096},
    # table 3, row (D): regularization
    "paper-D-dropout0": PAPER | {"dropout": 0.0},
    "paper-D-dropout0.2": PAPER | {"dropout": 0.2},
    "paper-D-smoothing0": PAPER | {"label_smoothing": 0.0},
    "paper-D-smoothing0.2": PAPER | {"label_smoothing": 0.2},
    # table 3, row (E): learned positions
    "paper-E-learned": PAPER | {"positions": "learned"},
    # "Step by step through Attention is All You Need", the code of its demo: ReLU on queries, keys and
    # values, no Wo, a large negative number for masked scores, a query mask, dropout of the attention weights
    # and of the embeddings
    "jianshu-demo": DOCUMENT
    | {
        "positions": "learned",
        "max_length": 10,
        "zero_padding": True,
        "projection_activation": "relu",
        "attention_output": False,
        "mask_fill": float(-(2**32) + 1),
        "query_masking": "after",
        "norm_eps": 1e-8,
        "dropout": 0.0,
        "embedding_dropout": 0.1,
        "attention_dropout": 0.1,
    },
    # "The illustrated Transformer" in the version of datawhale: -1e10 for masked scores, dropout of the
    # attention weights
    "datawhale": DOCUMENT | {"mask_fill": -1e10, "attention_dropout": 0.1},
    # "Attention mechanisms in detail (2)", which explains the code of tensor2tensor: the norm before the
    # sublayer, sines in one half and cosines in the other. The quoted code does not divide by sqrt(d_head)
    "tensor2tensor": DOCUMENT
    | {
        "tied": "all",
        "output_bias": False,
        "norm": "pre",
        "final_norm": True,
        "positions": "halves",
        "scale_scores": False,
        "attention_dropout": 0.1,
        "feed_forward_dropout": 0.1,
    },
    # "The components of the Transformer": -1e9 is added to masked scores, dropout of the outputs of sublayers
    "paperspace": DOCUMENT | {"masking_how": "add", "mask_fill": -1e9, "norm_eps": 1e-6},
}

ARCHITECTURES = registry("architecture", _SETTINGS)


CHOICES: dict[str, tuple[str, ...]] = {
    "positions": (*LAYOUTS, "learned", "relative", "rotary", "none"),
    "tied": ("none", "output", "all"),
    "activation": tuple(ACTIVATIONS),
    "projection_activation": tuple(ACTIVATIONS),
    "masking_how": ("replace", "add"),
    "query_masking": ("none", "after", "before"),
}
COUNTS = (
    "source_vocab",
    "target_vocab",
    "d_model",
    "d_ff",
    "n_heads",
    "n_layers",
    "decoder_layers",
    "d_head",
    "d_value",
    "max_length",
    "max_distance",
)
SHARES = ("dropout", "embedding_dropout", "attention_dropout", "feed_forward_dropout", "label_smoothing")

# after the dash, "a" occurs once, and no letter occurs twice: (?!.*(.).*\1) forbids a repeated letter
SPELLING = re.compile(r"n?-(?!.*(.).*\1)[nd]*a[nd]*")


@dataclass(frozen=True)
class TransformerConfig(ModelSettings):
    """The settings of a Transformer, with the names of the paper. The defaults are its base model.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    named: ClassVar[Registry[dict[str, Any]]] = ARCHITECTURES
    later: ClassVar[Mapping[str, Any]] = {"decoder_layers": None}
    choices: ClassVar[Mapping[str, Sequence[str]]] = CHOICES
    starts_with_end: ClassVar[bool] = False  # True if the decoder may start with the end symbol
    fixed: ClassVar[Sequence[str]] = ()  # the settings for which a family has one value, the default

    source_vocab: int = 37000
    target_vocab: int = 37000
    d_model: int = 512
    d_ff: int = 2048
    n_heads: int = 8
    n_layers: int = 6  # the number of layers of the encoder, and also of the decoder
    decoder_layers: int | None = None  # those of the decoder; None means n_layers
    d_head: int | None = None  # the width of the queries and keys of a head; None means d_model / n_heads
    d_value: int | None = None  # the width of the values of a head; None means d_head
    max_length: int = 256  # the longest sentence, in tokens

    # layer norm: "post" is after the sum, "pre" before the sublayer; or "n-da" etc. (see sequences.py)
    norm: str = "post"
    norm_eps: float = 1e-5
    final_norm: bool = False  # a layer norm after the last layer of each stack; norm "pre" needs it
    activation: str = "relu"  # the activation of the feed-forward network
    positions: str = "interleaved"  # one of CHOICES; "relative" and "rotary" act in self-attention only
    max_distance: int = 16  # the largest distance that has its own vector, with "relative" positions
    scale_embedding: bool = True  # multiply token vectors by sqrt(d_model)
    zero_padding: bool = False  # the embedding of padding is 0 and has no gradient
    tied: str = "all"  # "output": output and target embedding share a weight; "all": the source embedding too
    output_bias: bool = False

    dropout: float = 0.1  # the dropout probability of the output of every sublayer
    embedding_dropout: float | None = None  # that of embeddings + positions; None means the same
    attention_dropout: float = 0.0  # that of the attention weights
    feed_forward_dropout: float = 0.0  # that of the hidden layer of the feed-forward network
    label_smoothing: float = 0.1

    attention_bias: bool = True
    attention_output: bool = True  # multiply the concatenated heads by the matrix Wo
    projection_activation: str = "none"  # the activation of queries, keys and values
    fused_projections: bool = False  # compute several projections by one matrix product
    scale_scores: bool = True  # divide scores by sqrt(d_head)
    mask_fill: float = -math.inf  # the number that replaces a masked score, or is added to it
    masking_how: str = "replace"  # "replace" the score by mask_fill, or "add" mask_fill to the score
    query_masking: str = "none"  # set rows of padding queries to 0 "after" the softmax, or "before" it

    pad_id: int = 0
    start_id: int = 2  # it may be the id of padding: the first token of the decoder is never masked
    end_id: int = 3

    def __post_init__(self) -> None:
        if isinstance(self.norm, str) and "-" in self.norm:
            check_sequence(self.norm)
        else:
            require_choice("norm", self.norm, ("post", "pre"))
        ids = ("pad_id", "start_id", "end_id")
        self.require(choices=self.choices, counts=COUNTS, indices=ids, shares=SHARES, positive=("norm_eps",))
        for name in self.fixed:
            default = getattr(type(self), name)
            if getattr(self, name) != default:
                family = type(self).__name__.removesuffix("Config")
                raise UserError(
                    f"{name} is {getattr(self, name)!r}, and every {family} has {default!r}: leave it out"
                )
        if not (is_number(self.mask_fill) and self.mask_fill < math.inf):  # False for NaN too
            raise UserError(f"mask_fill is {self.mask_fill!r}: give -inf, or a number far below 0")
        for is_impossible, message in self._impossible():
            if is_impossible:
                raise UserError(message)

    def _impossible(self) -> Iterator[tuple[Any, str]]:
        """Yield pairs (condition, message): the configuration is impossible if the condition is true."""
        heads = self.n_heads * self.head_value  # H·L, the width of the concatenated heads
        yield (
            self.d_head is None and self.d_model % self.n_heads,
            f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: change one, or give d_head",
        )
        yield from self._impossible_positions()
        yield (
            self.tied == "all" and self.source_vocab != self.target_vocab,
            f"tied='all' shares one table between vocabularies of {self.source_vocab} and "
            f"{self.target_vocab} tokens: make them one vocabulary, or use tied='output'",
        )
        yield (
            not self.attention_output and heads != self.d_model,
            f"without attention_output the heads, {self.n_heads} × {self.head_value} = {heads} wide, are "
            f"added to the residual, {self.d_model} wide: make them equal",
        )
        yield (
            not self.norm.endswith(("post", "n")) and not self.final_norm,
            f"norm={self.norm!r} leaves the top of each stack unnormalized: set final_norm=True",
        )
        yield (
            self.query_masking == "before" and math.isinf(self.mask_fill),
            "query_masking='before' gives masked queries equal weights for all keys, and a mask_fill of -inf "
            "gives masked keys the weight 0: give a finite mask_fill",
        )
        yield (
            self.masking_how == "add" and math.isinf(self.mask_fill),
            "masking_how='add' with a mask_fill of -inf is the same as 'replace': use that, or a finite fill",
        )
        ids = (self.pad_id, self.start_id, self.end_id)
        others = ids[:1] if self.starts_with_end else ids[:2]
        yield (
            self.end_id in others or min(ids) < 0 or max(ids) >= min(self.source_vocab, self.target_vocab),
            f"pad_id, start_id and end_id are {ids}: end_id must differ from both others, and all must lie "
            "inside both vocabularies",
        )

    def _impossible_positions(self) -> Iterator[tuple[Any, str]]:
        """Yield such pairs about positions."""
        yield (
            self.positions in ("interleaved", "halves", "marian") and self.d_model % 2,
            f"positions {self.positions!r} pair sines with cosines, and d_model {self.d_model} is odd",
        )
        yield (
            self.positions == "rotary" and self.head_key % 2,
            f"positions='rotary' rotate pairs of numbers, and d_head is {self.head_key}: make it even",
        )
        yield (
            self.positions == "relative" and self.masking is not None,
            f"positions='relative' take exact masks, and mask_fill is {self.mask_fill}: leave out mask_fill",
        )

    @property
    def adds_positions(self) -> bool:
        """True if position vectors are added to the embeddings."""
        return self.positions not in ("relative", "rotary", "none")

    @property
    def input_dropout(self) -> float:
        """The dropout probability of embeddings plus positions."""
        return self.dropout if self.embedding_dropout is None else self.embedding_dropout

    @property
    def head_key(self) -> int:
        """The width K of the queries and keys of a head."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def head_value(self) -> int:
        """The width L of the values of a head."""
        return self.head_key if self.d_value is None else self.d_value

    @property
    def distinct_layers(self) -> int:
        """The number of layers of the encoder that have parameters of their own."""
        return self.n_layers

    @property
    def distinct_decoder_layers(self) -> int:
        """The same number of the decoder."""
        return self.distinct_layers if self.decoder_layers is None else self.decoder_layers

    @property
    def n_decoder_layers(self) -> int:
        """The number of layers of the decoder."""
        return self.n_layers if self.decoder_layers is None else self.decoder_layers

    @property
    def least_parameters(self) -> int:
        """A number of parameters that the model has at least, without building it."""
        vocabularies = self.target_vocab + (0 if self.tied == "all" else self.source_vocab)
        attention = self.n_heads * (2 * self.head_key + self.head_value)  # queries, keys and values
        distances = 2 * self.max_distance * self.head_key if self.positions == "relative" else 0
        encoder_layer = self.d_model * (attention + 2 * self.d_ff) + distances
        decoder_layer = self.d_model * (2 * attention + 2 * self.d_ff)
        layers = self.distinct_layers * encoder_layer + self.distinct_decoder_layers * decoder_layer
        positions = self.max_length * self.d_model if self.positions == "learned" else 0
        return vocabularies * self.d_model + layers + positions

    @property
    def masking(self) -> Masking | None:
        """The action of the masks on the scores (see Masking), or None if they are exact."""
        query = "after" if self.query_masking == "none" else self.query_masking
        return None if math.isinf(self.mask_fill) else Masking(self.mask_fill, self.masking_how, query)


def check_sequence(sequence: str) -> None:
    """Check that a string is a sequence of letters with a dash (see sequences.py), such as "n-da".

    Raises:
        UserError: If it is not.
    """
    if not SPELLING.fullmatch(sequence):
        raise UserError(
            f"{sequence!r} is not a sequence for a residual connection: write n or nothing, a dash, then "
            "a (add) once, with or without d (dropout) and n (normalize), such as n-da"
        )
