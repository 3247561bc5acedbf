"""Restoring capitals in lowercased text: "ein Mann", not "ein mann"."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from npformer.errors import UserError

_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")  # a word, a number or a mark
_FIRST_LETTER = re.compile(r"(?:^|[.!?] )[^\w]*[^\W\d_]")
_SHORTEST = 2  # the fewest letters of an ending that decides about an unseen word
_LAST = chr(0x10FFFF)

# what follows a word: a word that usually begins with a capital, another word, or no word
CAPITAL, LOWER, NO_WORD = "capital", "lower", "no word"
ANY = ""  # in place of the previous token of a context

Context = tuple[str, str, str]  # the previous token or ANY, a word, what follows; the first two in lower case


@dataclass(frozen=True)
class Casing:
    """The usual spellings of words: "Mann", "fährt", "USA", and the contexts in which they have others.

    German writes "ein Paar Schuhe", but "ein paar Leute". So a word with several spellings has, in some
    contexts, another one than usual. A context is the previous token and what follows: a word with a capital,
    another word or none. If the lines of `from_lines` did not have the context, what follows decides alone.

    A word that has no usual spelling begins with a capital if most of the known words with the same ending
    do. The ending is the longest that any known word has. So a German compound is a noun if its last part is
    one. The first letter of a sentence is a capital.

    Args:
        spellings: The usual spelling of each word.
        exceptions: Triples (previous token or ANY, spelling, what follows): the contexts in which the
            spelling of a word is not the usual one, or not the one in the context with ANY.

    Source: Moses' truecaser, for the usual spelling of each word; Yarowsky 1994, Decision Lists for Lexical
    Ambiguity Resolution, for the neighbours of a word as evidence.
    """

    spellings: tuple[str, ...]
    exceptions: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> "Casing":
        """Count the spellings of each word in its contexts, except the first word of each line.

        Raises:
            UserError: If no word has a capital, because the text is lowercased.
        """
        texts = [_TOKEN.findall(line) for line in lines]
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for tokens in texts:
            for place in _word_places(tokens)[1:]:
                counts[tokens[place].lower()][tokens[place]] += 1
        spellings = tuple(sorted(_most_frequent(count) for count in counts.values()))
        if all(word == word.lower() for word in spellings):
            raise UserError("these lines have no capitals to learn from: give text with capitals")
        usual = cls(spellings)
        ambiguous = {word for word, count in counts.items() if len(count) > 1}
        return cls(spellings, tuple(usual._learn_exceptions(texts, ambiguous)))

    def restore(self, text: str) -> str:
        """Return the text with each word in the spelling of its context."""
        places = list(_TOKEN.finditer(text))
        tokens = [found[0] for found in places]
        pieces, end = [], 0
        for place, found in enumerate(places):
            pieces += [text[end : found.start()], self._spell_in(tokens, place)]
            end = found.end()
        text = "".join([*pieces, text[end:]])
        return _FIRST_LETTER.sub(lambda match: match[0][:-1] + match[0][-1].upper(), text)

    def _spell_in(self, tokens: Sequence[str], place: int) -> str:
        """Return the spelling of a token among its neighbours. A token with capitals keeps them."""
        token = tokens[place]
        if token in self._ambiguous:
            for context in self._contexts(tokens, place):
                if context in self._exceptional:
                    return self._exceptional[context]
        return self._spell(token) if token == token.lower() else token

    def _contexts(self, tokens: Sequence[str], place: int) -> tuple[Context, Context]:
        """Return the context with the previous token, and the one with what follows alone."""
        word, previous = tokens[place].lower(), tokens[place - 1].lower() if place else ANY
        following = tokens[place + 1].lower() if place + 1 < len(tokens) else "."
        kind = NO_WORD
        if following[0].isalpha():
            kind = LOWER if self._spell(following) == following else CAPITAL
        return (previous, word, kind), (ANY, word, kind)

    def _learn_exceptions(
        self, texts: Iterable[Sequence[str]], words: set[str]
    ) -> list[tuple[str, str, str]]:
        """Return the contexts in which words most often have another spelling than without the context."""
        counts: dict[Context, Counter[str]] = defaultdict(Counter)
        for tokens in texts:
            for place in _word_places(tokens)[1:]:
                if tokens[place].lower() in words:
                    for context in self._contexts(tokens, place):
                        counts[context][tokens[place]] += 1
        found = []
        for (previous, word, kind), count in sorted(counts.items()):
            spelling = _most_frequent(count)
            without = self._usual[word] if previous == ANY else _most_frequent(counts[ANY, word, kind])
            if spelling != without:
                found.append((previous, spelling, kind))
        return found

    def _spell(self, word: str) -> str:
        """Return the usual spelling of a word in lower case, or the one that its ending suggests."""
        if word in self._usual:
            return self._usual[word]
        endings, capitals = self._endings
        for length in range(len(word) - 1, _SHORTEST - 1, -1):
            ending = word[: -length - 1 : -1]
            start, stop = bisect_left(endings, ending), bisect_left(endings, ending + _LAST)
            if start < stop:  # some words end so
                capital = 2 * (capitals[stop] - capitals[start]) > stop - start
                return word[0].upper() + word[1:] if capital else word
        return word

    @cached_property
    def _usual(self) -> Mapping[str, str]:
        return {spelling.lower(): spelling for spelling in self.spellings}

    @cached_property
    def _exceptional(self) -> Mapping[Context, str]:
        return {(previous, spelling.lower(), kind): spelling for previous, spelling, kind in self.exceptions}

    @cached_property
    def _ambiguous(self) -> frozenset[str]:
        return frozenset(word for _, word, _ in self._exceptional)

    @cached_property
    def _endings(self) -> tuple[list[str], list[int]]:
        """The known words, reversed and sorted, and how many before each one begin with a capital."""
        endings = sorted(word[::-1] for word in self._usual)
        capitals = (self._usual[word[::-1]] != word[::-1] for word in endings)
        return endings, list(accumulate(capitals, initial=0))


def _word_places(tokens: Sequence[str]) -> list[int]:
    return [place for place, token in enumerate(tokens) if token[0].isalpha()]


def _most_frequent(count: Counter[str]) -> str:
    return count.most_common(1)[0][0]
