"""A score on a model card: the part of the output of npformer score --json that a card keeps."""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npformer.errors import quantity
from npformer.escaping import shell_word
from npformer.generation.bleu_statistics import LengthScore, with_half_width
from npformer.storage.json_files import require_entries, require_object, require_version

FORMAT = 1  # of a card and of the output of npformer score --json
ADVICE = "give the JSON that npformer score --json printed"


@dataclass(frozen=True)
class MeasuredScore:
    """A BLEU score as `npformer score --json` printed it.

    Scores of earlier versions do not have the fields with a default.
    """

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
    half_width: float | None = None  # of the 95 % interval of BLEU
    by_length: tuple[LengthScore, ...] = ()
    known_words: str | None = None  # the name of the file with the words that are not invented
    words: int | None = None  # words of all translations
    invented: int | None = None  # those that are invented
    invented_in_reference: int | None = None  # those that the reference has as well

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "MeasuredScore":
        """Return the score in the output of `npformer score --json`, without its other entries.

        Raises:
            UserError: If an entry of the score is missing or of a wrong type.
        """
        what = "the score"
        content = require_object(content, what, ADVICE)
        require_version(content, what, FORMAT)
        types = typing.get_type_hints(cls) | {"by_length": list[Any]}
        entries = {name: value for name, value in content.items() if name in types}
        fields = dataclasses.fields(cls)
        required = {each.name: types[each.name] for each in fields if each.default is dataclasses.MISSING}
        require_entries(entries, required, what, ADVICE, optional=types)
        by_length = tuple(_length_score(each) for each in entries.get("by_length", ()))
        return cls(**(entries | {"by_length": by_length}))

    @property
    def score(self) -> str:
        """BLEU with its interval, as "41.60 ± 1.58"."""
        return with_half_width(self.bleu, self.half_width)

    @property
    def search(self) -> str:
        """The search, as "beam 5" or "greedy"."""
        return "greedy" if self.beam == 1 else f"beam {self.beam}"

    @property
    def invented_words(self) -> str:
        """The share of invented words, as "1.37 %", or "" if it was not measured."""
        if self.invented is None or self.words is None:
            return ""
        return f"{100 * self.invented / max(1, self.words):.2f} %"

    def command(self, model: str, *, beam: int, length_penalty: float) -> str:
        """Return the command that measures this score.

        Args:
            model: The name of the model.
            beam: The default beam of the model, which the command does not name.
            length_penalty: The default length penalty of the model.
        """
        words = ["npformer score --model", *map(shell_word, (model, self.source, self.reference))]
        if self.beam != beam:
            words += ["--beam", str(self.beam)]
        if self.beam > 1 and self.length_penalty != length_penalty:
            words += ["--length-penalty", f"{self.length_penalty:g}"]
        if self.known_words is not None:
            words += ["--known-words", shell_word(self.known_words)]
        return " ".join(words)

    def row(self) -> tuple[str, ...]:
        """Return the cells of the score's row in a table."""
        files = f"{self.reference}, {quantity(self.sentences, 'sentence')}"
        return files, self.setting, self.search, self.score, self.invented_words, self.signature

    def row_by_length(self, lengths: Sequence[str]) -> tuple[str, ...]:
        """Return the cells of the row with a score for each length of the source.

        Args:
            lengths: The lengths of the columns, such as "10-14". A cell without a sentence is empty.
        """
        cells = {
            each.lengths: f"{with_half_width(each.bleu, each.half_width)} ({each.sentences:,})"
            for each in self.by_length
        }
        return self.reference, self.search, *(cells.get(each, "") for each in lengths)


def _length_score(content: Any) -> LengthScore:
    """Return the score of the sentences of one length, or raise UserError."""
    what = "the score of a length"
    content = require_object(content, what, ADVICE)
    require_entries(content, typing.get_type_hints(LengthScore), what, ADVICE)
    return LengthScore(**content)
