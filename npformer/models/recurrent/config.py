"""The settings of a recurrent translator, and the named architectures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from npformer.errors import Registry, UserError
from npformer.models.settings import ModelSettings, registry
from npformer.nn.recurrent import KINDS
from npformer.validation import is_number

SMALL: dict[str, Any] = {
    "d_model": 96,
    "max_length": 64,
    "source_vocab": 10000,
    "target_vocab": 10000,
    # Without this factor the token vectors have the length 1, the states of the first steps are near 0, and
    # learning is slow: after 300 steps with the learning rate 0.006, the validation loss of "rnn-global" is
    # 0.24 with it and 0.94 without it
    "scale_embedding": True,
}

# With vocabularies of 284 and 380 tokens, the "small" Transformer has 438,144 parameters. d_hidden is chosen
# so that each of these models has the same number of parameters, within 1 %. With the 353 and 516 tokens of
# the built-in corpus, they have 2.8 % to 5.2 % more than its 457,824, so npformer family --measure chooses
# d_hidden for its corpus. The initial bias of the forget gate, 0 or 1, is the one with the lower validation
# loss after 1,500 steps (npformer family --search). Without attention, 1 is better by 4 %; with attention,
# the two differ by 0.6 % at most.
_SETTINGS: dict[str, dict[str, Any]] = {
    "rnn": SMALL | {"attention": "none", "d_hidden": 156},
    "rnn-additive": SMALL | {"attention": "additive", "d_hidden": 120, "forget_bias": 0.0},
    "rnn-global": SMALL | {"attention": "global", "d_hidden": 138},
    "rnn-global-feeding": SMALL
    | {"attention": "global", "feeding": True, "d_hidden": 124, "forget_bias": 0.0},
    "rnn-local-m": SMALL | {"attention": "local-m", "d_hidden": 138},
    # The window is that of the paper, D = 10. With D = 4 (σ = 2), the sigmoid of the predicted position
    # saturated within the first 30 steps (p = 0.99 S at every position), where it has almost no gradient:
    # the validation loss after 300 steps was 0.97, and 0.51 with D = 10 (see LocalPredictive)
    "rnn-local-p": SMALL | {"attention": "local-p", "window": 10, "d_hidden": 134},
}

ARCHITECTURES = registry("architecture", _SETTINGS)


ATTENTIONS = ("none", "additive", "global", "local-m", "local-p")
SCORES = ("dot", "general", "concat", "perceptron")


@dataclass(frozen=True)
class RecurrentConfig(ModelSettings):
    """The settings of a recurrent encoder and decoder. The defaults are Luong's global attention.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    named: ClassVar[Registry[dict[str, Any]]] = ARCHITECTURES

    source_vocab: int = 37000
    target_vocab: int = 37000
    d_model: int = 256  # the width of the token vectors
    d_hidden: int = 256  # the width of the encoder's output and of the decoder's h
    cell: str = "lstm"
    forget_bias: float = 1.0  # the initial bias of the forget gate of an LSTM; a GRU has none
    scale_embedding: bool = False  # multiply token vectors by sqrt(d_model)
    bidirectional: bool = True  # the encoder has two directions, each of the width d_hidden / 2
    max_length: int = 256  # the longest sentence, in tokens

    attention: str = "global"
    score: str = (
        "general"  # the similarity of "global", "local-m" and "local-p"; "additive" uses "perceptron"
    )
    window: int = 4  # for "local-m" and "local-p": the half width of the window, in tokens
    feeding: bool = False  # input feeding: the attentional state is an input of the next position

    dropout: float = 0.1  # the dropout probability of the token vectors and of the output layer's input
    label_smoothing: float = 0.1

    pad_id: int = 0
    start_id: int = 2
    end_id: int = 3

    def __post_init__(self) -> None:
        self.require(
            choices={"cell": tuple(KINDS), "attention": ATTENTIONS, "score": SCORES},
            counts=("source_vocab", "target_vocab", "d_model", "d_hidden", "max_length", "window"),
            indices=("pad_id", "start_id", "end_id"),
            shares=("dropout", "label_smoothing"),
        )
        if not (is_number(self.forget_bias) and math.isfinite(self.forget_bias)):
            raise UserError(f"forget_bias is {self.forget_bias!r}: it must be a finite number")
        if self.bidirectional and self.d_hidden % 2:
            raise UserError(f"bidirectional needs an even d_hidden, and it is {self.d_hidden}: change it")
        if self.feeding and self.attention in ("none", "additive"):
            raise UserError(
                f"feeding needs attention after the cell, and attention is {self.attention!r}: "
                "use global, local-m or local-p"
            )

    @property
    def embedding_scale(self) -> float:
        """The factor of the token vectors."""
        return math.sqrt(self.d_model) if self.scale_embedding else 1.0

    @property
    def least_parameters(self) -> int:
        """A number of parameters that the model has at least, without building it."""
        return (self.source_vocab + self.target_vocab) * self.d_model + self.d_hidden**2
