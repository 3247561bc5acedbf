"""Capitals for text that has lost them: "ein Mann", not "ein mann"."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from npformer.errors import UserError

_WORD = re.compile(r"[^\W\d_]+")
_FIRST_LETTER = re.compile(r"(?:^|[.!?] )[^\w]*[^\W\d_]")
_SHORTEST = 4  # letters of a word that another may end in: "wagen" in "Feuerwehrwagen"


@dataclass(frozen=True)
class Casing:
    """How each word is usually spelt: "Mann", "fährt", "USA".

    A word that is not among them takes after the longest that it ends in, since German compounds are nouns
    when their last part is. The first letter of a sentence is a capital.
    Source: the first idea is that of the truecaser that comes with Moses.
    """

    spellings: tuple[str, ...]

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> "Casing":
        """The most frequent spelling of each word inside a line; the first word of a line tells nothing.

        Errors: UserError for lines without a capital there: lowercased text.
        """
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for line in lines:
            for word in _WORD.findall(line)[1:]:
                counts[word.lower()][word] += 1
        spellings = tuple(sorted(found.most_common(1)[0][0] for found in counts.values()))
        if all(word == word.lower() for word in spellings):
            raise UserError("these lines have no capitals to learn from: give text as people write it")
        return cls(spellings)

    def restore(self, text: str) -> str:
        """The text with its words as they are usually spelt."""
        text = _WORD.sub(lambda found: self._spelt(found[0]), text)
        return _FIRST_LETTER.sub(lambda found: found[0][:-1] + found[0][-1].upper(), text)

    def _spelt(self, word: str) -> str:
        usual = self._usual
        if word in usual:
            return usual[word]
        for start in range(1, len(word) - _SHORTEST + 1):
            ending = word[start:]
            if ending in usual:
                return word if usual[ending] == ending else word[0].upper() + word[1:]
        return word

    @cached_property
    def _usual(self) -> dict[str, str]:
        return {spelling.lower(): spelling for spelling in self.spellings}
