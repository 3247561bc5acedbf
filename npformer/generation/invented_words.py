"""Words of translations that are neither in a text, such as the training text, nor copied from the source."""

import html
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_WORD = re.compile(r"[^\W\d_]+")


class InventedWords(NamedTuple):
    """The invented words of translations.

    A word is a run of letters, in lower case. It is invented if it is neither a known word nor in the source
    sentence. A translator with subwords can join them to any word: a right compound, or no word at all.
    """

    invented: tuple[str, ...]  # each occurrence, in the order of the translations
    in_reference: int  # number of those that the reference of the same sentence has as well
    words: int  # words of all translations

    @property
    def share(self) -> float:
        """The share of the invented words among all words, 0 .. 1."""
        return len(self.invented) / max(1, self.words)


def words_of(text: str) -> list[str]:
    """Return the words of a text, raw or tokenised: runs of letters, in lower case.

    "T-Shirt" has two words, and the entities of tokenised text have none: "&apos;" is an apostrophe.
    """
    return _WORD.findall(html.unescape(text).lower())


def known_words(lines: Iterable[str]) -> frozenset[str]:
    """Return the different words of the lines of a text, such as the target side of the training text."""
    return frozenset(word for line in lines for word in words_of(line))


def find_invented_words(
    translations: Sequence[str], sources: Sequence[str], references: Sequence[str], known: frozenset[str]
) -> InventedWords:
    """Return the words of translations that are neither known nor copied from the source.

    Args:
        translations: The translations.
        sources: The source of each translation.
        references: One reference for each translation.
        known: The known words, as `known_words` returns them.
    """
    invented: list[str] = []
    in_reference = total = 0
    for translation, source, reference in zip(translations, sources, references, strict=True):
        words, copied, right = words_of(translation), set(words_of(source)), set(words_of(reference))
        new = [word for word in words if word not in known and word not in copied]
        invented += new
        in_reference += sum(word in right for word in new)
        total += len(words)
    return InventedWords(tuple(invented), in_reference, total)
