"""TransformerConfig: every setting of a model, and why some do not go together."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from npformer.errors import UserError
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.masking import Masking
from npformer.layers import check_sequence
from npformer.settings import (
    choose_preset,
    is_number,
    require_choice,
    require_count,
    require_known,
    require_share,
)
from npformer.transformer.presets import PRESETS

CHOICES: dict[str, tuple[str, ...]] = {
    "positions": ("interleaved", "halves", "jianshu", "learned", "relative", "none"),
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
    "max_length",
    "max_distance",
)
SHARES = ("dropout", "input_dropout", "attention_dropout", "feed_forward_dropout", "label_smoothing")


@dataclass(frozen=True)
class TransformerConfig:
    """The settings of a Transformer, in the paper's words; the defaults are the paper's base model.

    Errors: UserError for settings that cannot be, in a sentence that says which and why.
    """

    source_vocab: int = 37000
    target_vocab: int = 37000
    d_model: int = 512
    d_ff: int = 2048
    n_heads: int = 8
    n_layers: int = 6  # of the encoder, and of the decoder
    d_head: int | None = None  # width of a head's queries and keys; d_model / n_heads if None
    d_value: int | None = None  # width of a head's values; d_head if None
    max_length: int = 256  # the longest sentence, in tokens

    norm: str = "post"  # after the residual, or "pre": before the sublayer; or a sequence such as "n-da"
    norm_eps: float = 1e-5
    final_norm: bool = False  # one more norm on top of each stack; norm "pre" needs it
    activation: str = "relu"  # inside the feed-forward network
    positions: str = "interleaved"  # added to the words; "relative": known to self-attention instead
    max_distance: int = 16  # from which on "relative" positions are all the same
    scale_embedding: bool = True  # by sqrt(d_model)
    zero_padding: bool = False  # the embedding of padding is 0 and has no gradient
    tied: str = "all"  # output with the target's embedding; "all": with the source's too
    output_bias: bool = False

    dropout: float = 0.1  # on every sublayer's output
    embedding_dropout: float | None = None  # on embeddings plus positions; the same as dropout if None
    attention_dropout: float = 0.0  # on the attention weights
    feed_forward_dropout: float = 0.0  # inside the feed-forward network
    label_smoothing: float = 0.1

    attention_bias: bool = True
    attention_output: bool = True  # the matrix Wo
    projection_activation: str = "none"  # on queries, keys and values
    fused_projections: bool = False
    scale_scores: bool = True  # by 1 / sqrt(d_head)
    mask_fill: float = -math.inf  # the number at masked scores
    masking_how: str = "replace"  # the score by mask_fill, or "add" mask_fill to it
    query_masking: str = "none"  # zero the rows of padding "after" the softmax, or "before" it

    pad_id: int = 0
    start_id: int = 2
    end_id: int = 3

    def __post_init__(self):
        for name, choices in CHOICES.items():
            require_choice(name, getattr(self, name), choices)
        if isinstance(self.norm, str) and "-" in self.norm:
            check_sequence(self.norm)
        else:
            require_choice("norm", self.norm, ("post", "pre"))
        for name in COUNTS:
            require_count(name, getattr(self, name))
        for name in ("d_head", "d_value"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        for name in SHARES:
            require_share(name, getattr(self, name))
        if not (is_number(self.norm_eps) and 0 < self.norm_eps < math.inf):
            raise UserError(f"norm_eps is {self.norm_eps!r}: it must be a number above 0")
        if not (is_number(self.mask_fill) and self.mask_fill < math.inf):  # False for NaN too
            raise UserError(f"mask_fill is {self.mask_fill!r}: give -inf, or a number far below 0")
        for refused, sentence in self._impossible():
            if refused:
                raise UserError(sentence)

    def _impossible(self):
        """Pairs (whether this configuration is such, the sentence that says why it cannot be)."""
        joined = self.n_heads * self.head_value  # H·L, the width of the heads side by side
        yield (
            self.d_head is None and self.d_model % self.n_heads,
            f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: change one, or give d_head",
        )
        yield (
            self.positions in ("interleaved", "halves") and self.d_model % 2,
            f"positions {self.positions!r} pair sines with cosines, and d_model {self.d_model} is odd",
        )
        yield (
            self.tied == "all" and self.source_vocab != self.target_vocab,
            f"tied='all' shares one table between vocabularies of {self.source_vocab} and "
            f"{self.target_vocab} words: make them one vocabulary, or use tied='output'",
        )
        yield (
            not self.attention_output and joined != self.d_model,
            f"without attention_output the heads, {self.n_heads} × {self.head_value} = {joined} wide, are "
            f"added to the residual, {self.d_model} wide: make them equal",
        )
        yield (
            not self.norm.endswith(("post", "n")) and not self.final_norm,
            f"norm={self.norm!r} leaves the top of each stack unnormalized: set final_norm=True",
        )
        yield (
            self.query_masking == "before" and math.isinf(self.mask_fill),
            "query_masking='before' makes uniform rows, which a mask_fill of -inf undoes: give a finite fill",
        )
        yield (
            self.masking_how == "add" and math.isinf(self.mask_fill),
            "masking_how='add' with a mask_fill of -inf is masking_how='replace': use that, or a finite fill",
        )
        ids = (self.pad_id, self.start_id, self.end_id)
        yield (
            len(set(ids)) < 3 or min(ids) < 0 or max(ids) >= min(self.source_vocab, self.target_vocab),
            f"pad_id, start_id and end_id are {ids}: they must differ and lie inside both vocabularies",
        )

    @property
    def adds_positions(self):
        """Whether a vector that says where a word stands is added to its embedding."""
        return self.positions not in ("relative", "none")

    @property
    def input_dropout(self):
        """The dropout on embeddings plus positions."""
        return self.dropout if self.embedding_dropout is None else self.embedding_dropout

    @property
    def head_key(self):
        """The width of a head's queries and keys, K."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def head_value(self):
        """The width of a head's values, L."""
        return self.head_key if self.d_value is None else self.d_value

    @property
    def masking(self):
        """How masks act on scores."""
        query = "after" if self.query_masking == "none" else self.query_masking
        return Masking(self.mask_fill, self.masking_how, query)

    def replace(self, **changes):
        """The same configuration with some settings changed; an unknown name is refused."""
        require_known(self, changes)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as a dict of plain values, for a file."""
        return dataclasses.asdict(self)

    @classmethod
    def preset(cls, name, **changes):
        """The configuration of that name (see presets.py), with some settings changed.

        Errors: UserError for an unknown name, with the nearest, or for settings that cannot be.
        """
        return cls().replace(**(PRESETS[choose_preset(name, list(PRESETS))] | changes))
