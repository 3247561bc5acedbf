"""The model card of a trained translator: its data, its training and its scores."""

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from npformer.errors import UserError
from npformer.generation.search import BEAM, LENGTH_PENALTY, MOST_LENGTH_PENALTY
from npformer.storage.json_files import require_entries, require_object, require_version
from npformer.storage.old_names import rename_card_fields
from npformer.storage.text import markdown, markdown_code, markdown_fence, printable, shell_word
from npformer.storage.validation import is_number, require_count

MOST_BEAM = 1000  # a larger one would need the memory of as many decoders
FORMAT = 1  # of a card and of the output of npformer score --json


@dataclass(frozen=True)
class MeasuredScore:
    """A BLEU score as `npformer score --json` printed it."""

    source: str  # the files' names
    reference: str
    setting: str  # "tokenised" or "raw"
    bleu: float
    signature: str
    beam: int
    length_penalty: float
    sentences: int
    empty: int  # number of empty translations
    weights: str  # the fingerprint of the weights that were measured

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "MeasuredScore":
        """Return the score in the output of `npformer score --json`, without its other entries.

        Raises:
            UserError: If an entry of the score is missing or of a wrong type.
        """
        what, advice = "the score", "give the JSON that npformer score --json printed"
        content = require_object(content, what, advice)
        require_version(content, what, FORMAT)
        names = [field.name for field in dataclasses.fields(cls)]
        entries = {name: value for name, value in content.items() if name in names}
        require_entries(entries, typing.get_type_hints(cls), what, advice)
        return cls(**entries)

    def row(self) -> tuple[str, ...]:
        """Return the cells of the score's row in a table."""
        files = f"{self.reference}, {self.sentences:,} sentences"
        return files, str(self.setting), f"{self.bleu:.2f}", str(self.beam), self.signature


@dataclass(frozen=True)
class Card:
    """The model card: the facts that a user of a trained translator needs.

    The person who trained the translator writes all fields except the scores, which are measured.
    """

    title: str  # "English to German"
    data: str  # the text that it was trained on
    licence: str  # of the data, and its consequence for the weights
    training: str  # a description of the model and its training
    command: str  # the command that trained it
    hours: float  # wall time of the training
    machine: str  # the machine of the training
    date: str  # the day of the export, as 2026-01-31
    example: str = ""  # a sentence to try
    beam: int = BEAM  # the defaults of the search
    length_penalty: float = LENGTH_PENALTY
    scores: tuple[MeasuredScore, ...] = ()

    def __post_init__(self) -> None:
        for name in ("title", "data", "licence", "training", "command", "machine", "date"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise UserError(f"the card's {name} is {value!r}: describe it in words")
        if not (is_number(self.hours) and 0 < self.hours < math.inf):
            raise UserError(
                f"the card's hours are {self.hours!r}: give the hours of training, a number above 0"
            )
        try:
            date.fromisoformat(self.date)
        except ValueError:
            raise UserError(f"the card's date is {self.date!r}: write it as 2026-01-31") from None
        require_count("the card's beam", self.beam)
        if self.beam > MOST_BEAM:
            raise UserError(f"the card's beam is {self.beam:,}: it must be at most {MOST_BEAM:,}")
        if not (is_number(self.length_penalty) and 0 <= self.length_penalty <= MOST_LENGTH_PENALTY):
            raise UserError(
                f"the card's length_penalty is {self.length_penalty!r}: it must be 0 or more, at most "
                f"{MOST_LENGTH_PENALTY}"
            )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Card":
        """Return the card with these fields, as `to_dict` returns them.

        Old names of fields are accepted as well.

        Raises:
            UserError: If a field is unknown, missing or of a wrong type.
        """
        what, advice = "the model card", "correct it"
        content = require_object(content, what, advice)
        require_version(content, what, FORMAT)
        content = rename_card_fields(content)
        types = typing.get_type_hints(cls) | {"scores": list[Any]}
        required = [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]
        require_entries(
            content,
            {name: types[name] for name in required},
            what,
            advice,
            optional=types | {"format": int},
        )
        fields = {name: value for name, value in content.items() if name != "format"}
        scores = tuple(MeasuredScore.from_dict(each) for each in fields.get("scores", ()))
        return cls(**(fields | {"scores": scores}))

    def to_dict(self) -> dict[str, Any]:
        """Return the card as a dict that JSON can hold."""
        return {"format": FORMAT} | dataclasses.asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """Return pairs (name, text) that describe all fields except the title, the example and the scores."""
        return [
            ("trained on", self.data),
            ("licence", self.licence),
            ("training", self.training),
            ("command", self.command),
            ("time", f"{self.hours:g} hour{'' if self.hours == 1 else 's'} on {self.machine}; {self.date}"),
            ("decoding", f"beam {self.beam} and length penalty {self.length_penalty:g} by default"),
        ]

    def section(self, name: str) -> str:
        """Return the card as a section in Markdown, for a translator that ships under this name."""
        blocks = [f"## The translator that ships: {markdown(self.title)}"]
        if self.example:
            plain = not set(self.example) & set('"$`\\!') and printable(self.example) == self.example
            example = f'"{self.example}"' if plain else shell_word(self.example)
            command = f"npformer translate --model {shell_word(name)} {example}"
            fence = markdown_fence(command)
            blocks.append(f"{fence}bash\n{command}\n{fence}")
        rows: list[tuple[str, ...]] = [
            (what, markdown_code(text) if what == "command" else markdown(text))
            for what, text in self.lines()
        ]
        blocks.append(_table(("", ""), rows))
        if self.scores:
            rows = [tuple(map(markdown, each.row())) for each in self.scores]
            blocks.append(_table(("test set", "form of the text", "BLEU", "beam", "signature"), rows))
        return "\n\n".join(blocks) + "\n"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in (heads, *rows))
    return "\n".join([head, "|" + "---|" * len(heads), *body])
