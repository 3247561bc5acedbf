"""RecurrentConfig: every setting of a recurrent translator."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from npformer.errors import UserError
from npformer.layers.recurrent import KINDS
from npformer.recurrent.presets import PRESETS
from npformer.settings import choose_preset, require_choice, require_count, require_known, require_share

ATTENTIONS = ("none", "additive", "global", "local-m", "local-p")
SCORES = ("dot", "general", "concat", "perceptron")


@dataclass(frozen=True)
class RecurrentConfig:
    """The settings of a recurrent encoder and decoder; the defaults are Luong's global attention.

    Errors: UserError for settings that cannot be, in a sentence that says which and why.
    """

    source_vocab: int = 37000
    target_vocab: int = 37000
    d_model: int = 256  # width of a word's vector
    d_hidden: int = 256  # width of the encoder's output, and of the decoder's h
    cell: str = "lstm"
    both_ways: bool = True  # the encoder reads from both sides, each d_hidden / 2 wide
    max_length: int = 256  # the longest sentence, in tokens

    attention: str = "global"
    score: str = "general"  # of "global" and the local ones; "additive" has its perceptron
    window: int = 4  # of the local ones: so many words to either side
    feeding: bool = False  # what the last word's attention made goes in with the next word

    dropout: float = 0.1  # on word vectors, and on what the output layer reads
    label_smoothing: float = 0.1

    pad_id: int = 0
    start_id: int = 2
    end_id: int = 3

    def __post_init__(self) -> None:
        for name, choices in {"cell": tuple(KINDS), "attention": ATTENTIONS, "score": SCORES}.items():
            require_choice(name, getattr(self, name), choices)
        for name in ("source_vocab", "target_vocab", "d_model", "d_hidden", "max_length", "window"):
            require_count(name, getattr(self, name))
        for name in ("dropout", "label_smoothing"):
            require_share(name, getattr(self, name))
        if self.both_ways and self.d_hidden % 2:
            raise UserError(f"both_ways halves d_hidden, and it is {self.d_hidden}: make it even")
        if self.feeding and self.attention in ("none", "additive"):
            raise UserError(
                f"feeding hands on what attention made after a word, and attention is {self.attention!r}: "
                "use global, local-m or local-p"
            )

    def replace(self, **changes: Any) -> "RecurrentConfig":
        """The same configuration with some settings changed; an unknown name is refused."""
        require_known(self, changes)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as a dict of plain values, for a file."""
        return dataclasses.asdict(self)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "RecurrentConfig":
        """The configuration of that name (see presets.py), with some settings changed.

        Errors: UserError for an unknown name, with the nearest, or for settings that cannot be.
        """
        return cls().replace(**(PRESETS[choose_preset(name, list(PRESETS))] | changes))
