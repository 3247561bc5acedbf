"""The vocabulary, which maps words or subwords to ids and back."""

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from npformer.data.tokens import LANGUAGES, Language
from npformer.errors import UserError, quantity
from npformer.storage.json_files import parse_json, require_entries, require_object, require_version
from npformer.validation import require_count, short

PAD, UNK, START, END = range(4)
SPECIALS = ("<PAD>", "<UNK>", "<S>", "</S>")
MASK = "[MASK]"  # replaces a hidden word; tokenize splits it into three words, so no text can contain it

# The version of the JSON texts of vocabularies and codecs. Version 1 is written without a number, because the
# text is a part of the fingerprint of a dataset, by which a run recognises its sentences.
CODEC_FORMAT = 1


@dataclass(frozen=True)
class Vocabulary:
    """The words that a model knows: `words[i]` is the word with id i, and the first four are SPECIALS.

    Raises:
        UserError: If the special tokens do not come first, or a word occurs twice or is not a string.
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
        """Return the vocabulary of the words in `sentences`, the most frequent first.

        Words of the same frequency are in alphabetical order.

        Args:
            sentences: Sentences that are already split into words.
            min_count: Leave out words that occur less often.
            max_size: The largest size of the vocabulary, special tokens included.

        Raises:
            UserError: If settings are out of range, a sentence is not split into words, or no word is left.
        """
        require_count("min_count", min_count)
        if max_size is not None and max_size <= len(SPECIALS):
            raise UserError(
                f"max_size is {max_size}: it must be more than {len(SPECIALS)}, the number of special tokens"
            )
        counts: Counter[str] = Counter()
        for sentence in sentences:
            if isinstance(sentence, str):
                raise UserError(
                    f"the sentence {sentence!r} is one string: split it into words with tokenize first"
                )
            counts.update(sentence)
        for special in SPECIALS:
            counts.pop(special, None)  # it has an id already
        frequent = [word for word, count in counts.items() if count >= min_count]
        if not frequent:
            raise UserError(
                f"no word of the sentences occurs {quantity(min_count, 'time')} or more: "
                "give more text or a lower min_count"
            )
        frequent.sort(key=lambda word: (-counts[word], word))
        return cls((*SPECIALS, *frequent)[:max_size])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def id(self, word: str) -> int:
        """Return the id of a word, or UNK if the word is not in the vocabulary."""
        return self._ids.get(word, UNK)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the ids of the words, UNK for each unknown one. START and END are not added."""
        return [self._ids.get(word, UNK) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words of the ids up to the first END, without PAD and START. UNK becomes <UNK>.

        ids is a list or an integer array (T,).

        Raises:
            UserError: If an id is outside the vocabulary.
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
        """Return the words that are not in the vocabulary, each once, in the order in which they come."""
        return [word for word in dict.fromkeys(words) if word not in self._ids]


class SavedCodec:
    """A codec that is written as a JSON text, with its kind and the entries from which it is made.

    Attributes:
        kind: The kind.
        types: The types of the entries by their names.
        later: The types of the entries that not every text has.
    """

    kind: ClassVar[str]
    types: ClassVar[dict[str, Any]] = {}
    later: ClassVar[dict[str, Any]] = {}

    def entries(self) -> dict[str, Any]:
        """Return the entries of the JSON text. By default, they are attributes of the codec."""
        return {name: getattr(self, name) for name in self.types}

    @classmethod
    def from_entries(cls, content: dict[str, Any]) -> Self:
        """Return the codec of these entries. By default, they are its arguments."""
        return cls(**{name: content[name] for name in cls.types})

    def to_json(self) -> str:
        """Return the codec as a JSON text, which from_json reads."""
        return json.dumps({"kind": self.kind} | self.entries(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the codec that to_json wrote.

        Raises:
            UserError: If the text is not one that to_json wrote.
        """
        content, types = read_object(text, cls.kind), {"kind": str} | cls.types
        what, later = f"the {cls.kind.removeprefix('npformer ')}", cls.later | {"format": int}
        require_entries(content, types, what, "write it again with to_json", optional=later)
        return cls.from_entries(content)


@dataclass(frozen=True)
class SentenceCodec(SavedCodec):
    """A codec of sentences: a vocabulary, and the language whose rules split a text into words or pieces."""

    types: ClassVar[dict[str, Any]] = {"language": str, "elision": bool, "lowercase": bool}

    vocabulary: Vocabulary
    language: Language = LANGUAGES["plain"]
    lowercase: bool = True

    def entries(self) -> dict[str, Any]:
        """Return the entries of the JSON text that all codecs of sentences have."""
        name, elision = self.language
        return {"language": name, "elision": elision, "lowercase": self.lowercase}

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words or pieces by their ids, special tokens first."""
        return self.vocabulary.words

    @abstractmethod
    def words(self, text: str) -> list[str]:
        """Return the words or pieces of a sentence, known or not."""

    def encode(self, text: str, *, strict: bool = False) -> list[int]:
        """Return the ids of a sentence, without START and END, and UNK for what is unknown.

        An empty sentence gives [].

        Raises:
            UserError: If the sentence is empty and strict is True (for text that a person typed).
        """
        words = self.words(text)
        if strict and not words:
            raise UserError(f"the sentence {text!r} is empty: write at least one word")
        ids = self.vocabulary.encode(words)
        return [index if index >= len(SPECIALS) else UNK for index in ids]  # no text can give a special token


def read_codec(text: str, *classes: type[SavedCodec]) -> Any:
    """Return the codec of one of these classes whose to_json wrote the text.

    Raises:
        UserError: If the text is not one that such a codec wrote.
    """
    by_kind = {codec.kind: codec for codec in classes}
    return by_kind[read_object(text, *by_kind)["kind"]].from_json(text)


def read_object(text: str, *kinds: str) -> dict[str, Any]:
    """Return the JSON object in `text`, whose entry "kind" must be one of the kinds.

    Raises:
        UserError: If the text is not such an object.
    """
    kind = " or ".join(kinds)
    what, advice = f"the text of the {kind}", "give one that npformer wrote"
    content = require_object(parse_json(text, what, advice), what, advice)
    if content.get("kind") not in kinds:
        found = short(content.get("kind"))
        raise UserError(f'this is not an {kind}: its "kind" is {found}; give a text that npformer wrote')
    require_version(content, what, CODEC_FORMAT)
    return content
