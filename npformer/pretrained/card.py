"""The model card of a trained translator: its data, its training and its scores."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from npformer.errors import UserError
from npformer.storage.old_names import rename_card_fields
from npformer.storage.validation import is_number, require_count


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
            UserError: If an entry of the score is missing.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(content, Mapping) or not set(names) <= content.keys():
            raise UserError("this is not a score: give the JSON that npformer score --json printed")
        return cls(**{name: content[name] for name in names})

    def row(self) -> tuple[str, ...]:
        """Return the cells of the score's row in a table."""
        files = f"{self.reference}, {self.sentences:,} sentences"
        return files, self.setting, f"{self.bleu:.2f}", str(self.beam), _in_cell(self.signature)


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
    beam: int = 5  # the defaults of the search
    length_penalty: float = 0.6
    scores: tuple[MeasuredScore, ...] = ()

    def __post_init__(self) -> None:
        for name in ("title", "data", "licence", "training", "command", "machine", "date"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise UserError(f"the card's {name} is {value!r}: describe it in words")
        if not (is_number(self.hours) and self.hours > 0):
            raise UserError(
                f"the card's hours are {self.hours!r}: give the hours of training, a number above 0"
            )
        try:
            date.fromisoformat(self.date)
        except ValueError:
            raise UserError(f"the card's date is {self.date!r}: write it as 2026-01-31") from None
        require_count("the card's beam", self.beam)
        if not (is_number(self.length_penalty) and self.length_penalty >= 0):
            raise UserError(f"the card's length_penalty is {self.length_penalty!r}: it must be 0 or more")

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Card":
        """Return the card with these fields, as `to_dict` returns them.

        Old names of fields are accepted as well.

        Raises:
            UserError: If a field is unknown or missing.
        """
        if not isinstance(content, Mapping):
            raise UserError("a card is a JSON object of its fields: give one")
        content = rename_card_fields(content)
        fields = dataclasses.fields(cls)
        known = [field.name for field in fields]
        for name in content:
            if name not in known:
                raise UserError(f"a card has no {name!r}: it has {', '.join(known)}")
        for field in fields:
            if field.default is dataclasses.MISSING and field.name not in content:
                raise UserError(f"the card has no {field.name}: add it")
        scores = tuple(MeasuredScore.from_dict(each) for each in content.get("scores", ()))
        return cls(**{**content, "scores": scores})

    def to_dict(self) -> dict[str, Any]:
        """Return the card as a dict that JSON can hold."""
        return dataclasses.asdict(self)

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
        blocks = [f"## The translator that ships: {self.title}"]
        if self.example:
            blocks.append(f'```bash\nnpformer translate --model {name} "{self.example}"\n```')
        rows: list[tuple[str, ...]] = [
            (what, f"`{text}`" if what == "command" else _in_cell(text)) for what, text in self.lines()
        ]
        blocks.append(_table(("", ""), rows))
        if self.scores:
            rows = [each.row() for each in self.scores]
            blocks.append(_table(("test set", "form of the text", "BLEU", "beam", "signature"), rows))
        return "\n\n".join(blocks) + "\n"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in (heads, *rows))
    return "\n".join([head, "|" + "---|" * len(heads), *body])


def _in_cell(text: str) -> str:
    """Escape the bars of a text, which would end a table's cell."""
    return text.replace("|", "&#124;")
