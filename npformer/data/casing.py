"""Restoring capitals in lowercased text: "ein Mann", not "ein mann"."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from npformer.errors import UserError

_WORD = re.compile(r"[^\W\d_]+")
_FIRST_LETTER = re.compile(r"(?:^|[.!?] )[^\w]*[^\W\d_]")
_SHORTEST = 4  # letters of a known word at the end of a compound, at least: "wagen" in "Feuerwehrwagen"


@dataclass(frozen=True)
class Casing:
    """The usual spellings of words: "Mann", "fährt", "USA".

    A word that has no usual spelling begins with a capital if the longest known word at its end does, because
    a German compound is a noun if its last part is a noun. The first letter of a sentence is a capital.

    Source: Moses' truecaser, for the usual spelling of each word.
    """

    spellings: tuple[str, ...]

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> "Casing":
        """Count the most frequent spelling of each word, except the first word of each line.

        Raises:
            UserError: If no word has a capital, because the text is lowercased.
        """
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for line in lines:
            for word in _WORD.findall(line)[1:]:
                counts[word.lower()][word] += 1
        spellings = tuple(sorted(count.most_common(1)[0][0] for count in counts.values()))
        if all(word == word.lower() for word in spellings):
            raise UserError("these lines have no capitals to learn from: give text with capitals")
        return cls(spellings)

    def restore(self, text: str) -> str:
        """Return the text with each word in its usual spelling."""
        text = _WORD.sub(lambda match: self._spell(match[0]), text)
        return _FIRST_LETTER.sub(lambda match: match[0][:-1] + match[0][-1].upper(), text)

    def _spell(self, word: str) -> str:
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
