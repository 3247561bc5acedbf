"""Words to numbers and back: the vocabulary, and the codec that takes whole sentences through it."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from npformer.data.tokens import LANGUAGES, Language, detokenize, tokenize
from npformer.errors import UserError

PAD, UNK, START, END = range(4)
SPECIALS = ("<PAD>", "<UNK>", "<S>", "</S>")


@dataclass(frozen=True)
class Vocabulary:
    """The words a model knows, numbered: `words[i]` is the word with id i, and the first four are SPECIALS.

    Errors: UserError when the specials do not come first, or a word occurs twice or is not a string.
    """

    words: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # a frozen dataclass sets its own fields this way; tuple() so that a list works too
        object.__setattr__(self, "words", tuple(self.words))
        if self.words[: len(SPECIALS)] != SPECIALS:
            raise UserError(
                f"a vocabulary starts with the words {', '.join(SPECIALS)}, but this one starts with "
                f"{list(self.words[: len(SPECIALS)])}: build it with Vocabulary.from_sentences"
            )
        ids: dict[str, int] = {}
        for index, word in enumerate(self.words):
            if not isinstance(word, str):
                raise UserError(f"word {index} of the vocabulary is {word!r}: every word must be a string")
            if word in ids:
                raise UserError(f"the vocabulary has {word!r} twice, at {ids[word]} and {index}: remove one")
            ids[word] = index
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[list[str]], *, min_count: int = 1, max_size: int | None = None
    ) -> "Vocabulary":
        """The vocabulary of the words in `sentences`: most frequent first, ties in alphabetical order.

        min_count: leave out words that occur less often. max_size: the largest size, specials included.
        Errors: UserError for settings out of range, a sentence not yet split, or when no word is left.
        """
        if min_count < 1:
            raise UserError(f"min_count is {min_count}: it must be 1 or more")
        if max_size is not None and max_size <= len(SPECIALS):
            raise UserError(
                f"max_size is {max_size}: it must be more than {len(SPECIALS)}, which the special words take"
            )
        counts: Counter[str] = Counter()
        for sentence in sentences:
            if isinstance(sentence, str):
                raise UserError(
                    f"the sentence {sentence!r} is one string: split it into words with tokenize first"
                )
            counts.update(sentence)
        for special in SPECIALS:
            counts.pop(special, None)  # it has its place already
        frequent = [word for word, count in counts.items() if count >= min_count]
        if not frequent:
            raise UserError(
                f"no word occurs {min_count} times in the sentences: give more text or a lower min_count"
            )
        frequent.sort(key=lambda word: (-counts[word], word))
        return cls((*SPECIALS, *frequent)[:max_size])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def id(self, word: str) -> int:
        """The id of a word; UNK for a word that is not in the vocabulary."""
        return self._ids.get(word, UNK)

    def encode(self, words: Iterable[str]) -> list[int]:
        """The ids of the words, UNK for each unknown one; nothing is added at either end."""
        return [self._ids.get(word, UNK) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The words of the ids up to the first END, without PAD and START; an unknown word reads <UNK>.

        ids: a list or an integer array (T,). Errors: UserError for an id outside the vocabulary.
        """
        words = []
        for index in map(int, ids):
            if index == END:
                break
            if not 0 <= index < len(self.words):
                raise UserError(
                    f"the id {index} is outside the vocabulary of {len(self)} words: "
                    "decode with the vocabulary that the model was trained with"
                )
            if index not in (PAD, START):
                words.append(self.words[index])
        return words

    def unknown(self, words: Iterable[str]) -> list[str]:
        """Those of the words that are not in the vocabulary, each once, in the order they come."""
        return [word for word in dict.fromkeys(words) if word not in self._ids]

    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that differ for vocabularies that differ, for a checkpoint to compare."""
        return hashlib.sha256(json.dumps(self.words).encode()).hexdigest()[:12]

    def to_json(self) -> str:
        """The vocabulary as a JSON text, which from_json reads back."""
        return json.dumps({"kind": _VOCABULARY, "words": self.words}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """The vocabulary that to_json wrote. Errors: UserError for any other text."""
        words = read_object(text, _VOCABULARY).get("words")
        if not isinstance(words, list):
            raise UserError('this vocabulary has no list "words": write it again with to_json')
        return cls(tuple(words))


@dataclass(frozen=True)
class TextCodec:
    """From a sentence to ids and back: a vocabulary, and how text of its language is split into words."""

    vocabulary: Vocabulary
    language: Language = LANGUAGES["plain"]
    lowercase: bool = True

    @classmethod
    def from_lines(
        cls,
        lines: Iterable[str],
        *,
        language: Language = LANGUAGES["plain"],
        lowercase: bool = True,
        min_count: int = 1,
        max_size: int | None = None,
    ) -> "TextCodec":
        """The codec for the words in `lines`; the settings are those of Vocabulary.from_sentences."""
        sentences = (tokenize(line, lowercase=lowercase, elision=language.elision) for line in lines)
        vocabulary = Vocabulary.from_sentences(sentences, min_count=min_count, max_size=max_size)
        return cls(vocabulary, language, lowercase)

    def words(self, text: str) -> list[str]:
        """The words of a sentence, known or not."""
        return tokenize(text, lowercase=self.lowercase, elision=self.language.elision)

    def encode(self, text: str, *, strict: bool = False) -> list[int]:
        """The ids of a sentence, without START and END.

        An empty sentence gives []. strict=True, meant for what a person typed, refuses it.
        Errors: UserError for an empty sentence where strict.
        """
        words = self.words(text)
        if strict and not words:
            raise UserError(f"the sentence {text!r} is empty: write at least one word")
        return self.vocabulary.encode(words)

    def decode(self, ids: Iterable[int]) -> str:
        """The sentence of the ids up to the first END. Errors: UserError for an id outside the vocabulary."""
        return detokenize(self.vocabulary.decode(ids))

    def to_json(self) -> str:
        """The codec as a JSON text, which from_json reads back."""
        content = {
            "kind": TEXT_CODEC,
            "language": self.language.name,
            "elision": self.language.elision,
            "lowercase": self.lowercase,
            "words": self.vocabulary.words,
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "TextCodec":
        """The codec that to_json wrote. Errors: UserError for any other text."""
        content = read_object(text, TEXT_CODEC)
        for name, kind in {"language": str, "elision": bool, "lowercase": bool, "words": list}.items():
            if not isinstance(content.get(name), kind):
                raise UserError(
                    f'this text codec has no {kind.__name__} "{name}": write it again with to_json'
                )
        language = Language(content["language"], content["elision"])
        return cls(Vocabulary(tuple(content["words"])), language, content["lowercase"])


_VOCABULARY = "npformer vocabulary"
TEXT_CODEC = "npformer text codec"


def read_object(text: str, *kinds: str) -> dict[str, Any]:
    """The JSON object in `text`, which must say that it is of one of the kinds; UserError if it does not."""
    kind = " or ".join(kinds)
    try:
        content = json.loads(text)
    except ValueError as error:
        raise UserError(
            f"this is not an {kind}: it is not JSON ({error}); give a file that npformer wrote"
        ) from None
    found = content.get("kind") if isinstance(content, dict) else None
    if found not in kinds:
        raise UserError(f'this is not an {kind}: its "kind" is {found!r}; give a file that npformer wrote')
    return content
