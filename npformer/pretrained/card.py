"""The model card of a trained translator: its data, its training and its scores."""

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from npformer.errors import UserError
from npformer.escaping import markdown, markdown_code, markdown_fence, shell_text, shell_word
from npformer.generation.search import BEAM, LENGTH_PENALTY, MOST_LENGTH_PENALTY
from npformer.pretrained.measured_score import FORMAT, MeasuredScore
from npformer.storage.json_files import require_entries, require_object, require_version
from npformer.validation import is_number, require_count

BY_LENGTH = "BLEU by the length of the source sentence, with the number of sentences:"
MOST_BEAM = 1000  # a larger one would need the memory of as many decoders


@dataclass(frozen=True)
class Limit:
    """Something that a translator cannot do, with an example."""

    what: str  # "numbers of more than one digit"
    source: str  # a sentence
    translation: str  # its translation, as the translator writes it

    @classmethod
    def from_dict(cls, content: Any) -> "Limit":
        """Return the limit with these fields.

        Raises:
            UserError: If a field is unknown, missing or of a wrong type.
        """
        what, advice = "the limit", "correct it"
        content = require_object(content, what, advice)
        require_entries(content, typing.get_type_hints(cls), what, advice)
        return cls(**content)


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
    comparison: str = ""  # published scores of other models
    limits: tuple[Limit, ...] = ()  # what it cannot do
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

        Raises:
            UserError: If a field is unknown, missing or of a wrong type.
        """
        what, advice = "the model card", "correct it"
        content = require_object(content, what, advice)
        require_version(content, what, FORMAT)
        types = typing.get_type_hints(cls) | {"scores": list[Any], "limits": list[Any]}
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
        limits = tuple(Limit.from_dict(each) for each in fields.get("limits", ()))
        return cls(**(fields | {"scores": scores, "limits": limits}))

    def to_dict(self) -> dict[str, Any]:
        """Return the card as a dict that JSON can hold."""
        return {"format": FORMAT} | dataclasses.asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """Return pairs (name, text) that describe all fields except the title, example, limits and scores."""
        lines = [
            ("trained on", self.data),
            ("licence", self.licence),
            ("training", self.training),
            ("command", self.command),
            ("time", f"{self.hours:g} hour{'' if self.hours == 1 else 's'} on {self.machine}; {self.date}"),
            ("decoding", f"beam {self.beam} and length penalty {self.length_penalty:g} by default"),
        ]
        return [*lines, ("comparison", self.comparison)] if self.comparison else lines

    def section(self, name: str) -> str:
        """Return the card as a section in Markdown, for a translator that ships under this name."""
        blocks = [f"## The translator that ships: {markdown(self.title)}"]
        if self.example:
            command = f"npformer translate --model {shell_word(name)} {shell_text(self.example)}"
            fence = markdown_fence(command)
            blocks.append(f"{fence}bash\n{command}\n{fence}")
        rows: list[tuple[str, ...]] = [
            (what, markdown_code(text) if what == "command" else markdown(text))
            for what, text in self.lines()
        ]
        blocks.append(_table(("", ""), rows))
        blocks += [*self._score_blocks(name), *self._limit_blocks()]
        return "\n\n".join(blocks) + "\n"

    def commands(self, name: str) -> list[str]:
        """Return the command that measures each score, for a translator of this name."""
        beam, penalty = self.beam, self.length_penalty
        return [each.command(name, beam=beam, length_penalty=penalty) for each in self.scores]

    def _score_blocks(self, name: str) -> list[str]:
        """Return the tables of the scores and the commands that measure them, as blocks of Markdown."""
        if not self.scores:
            return []
        rows = [tuple(map(markdown, each.row())) for each in self.scores]
        blocks = [
            _table(("test set", "form of the text", "search", "BLEU", "invented words", "signature"), rows)
        ]
        measured = [each for each in self.scores if each.by_length]
        if measured:
            groups = dict.fromkeys((part.least, part.lengths) for each in measured for part in each.by_length)
            lengths = [text for _, text in sorted(groups)]
            heads = ("test set", "search", *(f"{each} words" for each in lengths))
            rows = [tuple(map(markdown, each.row_by_length(lengths))) for each in measured]
            blocks += [BY_LENGTH, _table(heads, rows)]
        commands = "\n".join(self.commands(name))
        fence = markdown_fence(commands)
        return [*blocks, f"{fence}bash\n{commands}\n{fence}"]

    def _limit_blocks(self) -> list[str]:
        """Return the table of what the translator cannot do, as blocks of Markdown."""
        if not self.limits:
            return []
        rows = [tuple(map(markdown, (each.what, each.source, each.translation))) for each in self.limits]
        return [_table(("what it cannot do", "sentence", "its translation"), rows)]


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in (heads, *rows))
    return "\n".join([head, "|" + "---|" * len(heads), *body])
