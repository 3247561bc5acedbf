"""Subwords: a codec that splits rare words into pieces, so that nearly every text has ids.

sentencepiece chooses the pieces, once, in SubwordCodec.train. Encoding text needs npformer only.
"""

import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import Any, ClassVar, Literal, Self

from npformer.data.casing import Casing
from npformer.data.moses import moses_detokenize, tokenised
from npformer.data.tokens import LANGUAGES, Language, one_spelling
from npformer.data.vocabulary import END, PAD, SPECIALS, START, UNK, SentenceCodec, Vocabulary
from npformer.errors import UserError, quantity
from npformer.validation import require_choice, require_count

TEXTS = ("raw", "tokenised")
WORD_BEGIN = "▁"  # U+2581 stands before every word, as in sentencepiece: "▁the ▁dog s"

TextForm = Literal["raw", "tokenised"]

# the ids of the special tokens in sentencepiece, for sentences and for a long text; -1 means none
SPECIAL_IDS: dict[str, Any] = {"pad_id": PAD, "unk_id": UNK, "bos_id": START, "eos_id": END}
UNKNOWN_ID: dict[str, Any] = {"pad_id": -1, "unk_id": 0, "bos_id": -1, "eos_id": -1}

# the pieces of this number of words are cached; a corpus has far fewer different words
_CACHED_WORDS = 1 << 17


class Pieces:
    """Byte-pair encoding: splits words into pieces.

    The search starts from single characters. In each step it joins the two neighbours whose joint piece was
    made earliest in training. If there are several such pairs, it joins the leftmost. It ends when no two
    neighbours make a piece.

    Args:
        pieces: The pieces that training made, the earliest first. Single characters may stand anywhere.

    Source: Sennrich et al. 2016, section 3.2. As in sentencepiece, the order of joining depends on the joint
    pieces, not on the pairs that make them.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        self.ranks = {piece: rank for rank, piece in enumerate(pieces)}
        self.split = lru_cache(_CACHED_WORDS)(self._split)

    def _split(self, word: str) -> tuple[str, ...]:
        """Return the pieces of WORD_BEGIN + word. A run of unknown characters stays together."""
        pieces = self._join(WORD_BEGIN + word)
        runs = groupby(pieces, key=self.ranks.__contains__)
        split: list[str] = []
        for known, run in runs:
            split += run if known else ["".join(run)]
        return tuple(split)

    def _join(self, text: str) -> list[str]:
        """Join neighbours, the earliest piece first, in about n log n steps for n characters.

        A piece is text[start:stop]. A candidate (rank, start, middle, stop) would join the two pieces that
        meet at `middle`. It becomes invalid when either of them is joined to another piece.
        """
        stops = list(range(1, len(text) + 1))  # stops[start] is the end of the piece that begins at start
        starts = list(range(-1, len(text)))  # starts[stop] is the beginning of the piece that ends at stop
        candidates = []
        for start in range(len(text) - 1):
            rank = self.ranks.get(text[start : start + 2])
            if rank is not None:
                candidates.append((rank, start, start + 1, start + 2))
        heapify(candidates)
        while candidates:
            _, start, middle, stop = heappop(candidates)
            if stops[start] != middle or stops[middle] != stop:
                continue
            stops[start], starts[stop] = stop, start
            stops[middle] = starts[middle] = -1  # no piece begins or ends here any more
            before = (starts[start], start, stop)
            after = (start, stop, stops[stop] if stop < len(text) else -1)
            for left, meet, right in (before, after):
                rank = self.ranks.get(text[left:right]) if left >= 0 and right >= 0 else None
                if rank is not None:
                    heappush(candidates, (rank, left, meet, right))
        pieces, start = [], 0
        while start < len(text):
            pieces.append(text[start : stops[start]])
            start = stops[start]
        return pieces


@dataclass(frozen=True)
class SubwordCodec(SentenceCodec):
    """A codec of subwords: it splits "dogs ran" into "▁dog", "s" and "▁ran", and joins them again.

    Args:
        vocabulary: SPECIALS and the pieces, in the order in which training made them, characters last.
        language: The language of the text.
        lowercase: Convert text to lower case. Tokenised text is always in lower case.
        text: "raw" encodes text as people write it; "tokenised" first brings it to the form of tokenised
            corpora, by the rules of the language, and decodes to that form.
        casing: Restores the capitals of lowercased text for a reader, or None.

    Raises:
        UserError: If settings are out of range.
    """

    kind: ClassVar[str] = "npformer subword codec"
    types: ClassVar[dict[str, Any]] = SentenceCodec.types | {"text": str, "pieces": str}
    later: ClassVar[dict[str, Any]] = {"spellings": str, "exceptions": list[tuple[str, str, str]]}

    text: TextForm = "raw"
    casing: Casing | None = None
    _pieces: Pieces = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_choice("text", self.text, TEXTS)
        if self.text == "tokenised" and not self.lowercase:
            raise UserError("tokenised text has no capitals: leave out lowercase=False, or use text='raw'")
        # the special tokens are not among the pieces, so no text can produce one
        object.__setattr__(self, "_pieces", Pieces(self.vocabulary.words[len(SPECIALS) :]))

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        size: int,
        *,
        language: Language = LANGUAGES["plain"],
        lowercase: bool = True,
        text: TextForm = "raw",
    ) -> "SubwordCodec":
        """Train a codec with `size` pieces, SPECIALS included, by byte-pair encoding of the lines.

        The same lines in the same order give the same pieces.

        Args:
            lines: The sentences.
            size: The number of pieces, SPECIALS included.
            language: The language of the text.
            lowercase: Convert the text to lower case.
            text: The form of the text, "raw" or "tokenised".

        Raises:
            UserError: If sentencepiece is not installed, or the lines are too few for the size.
        """
        plain = cls(Vocabulary(SPECIALS), language, lowercase, text)
        return replace(plain, vocabulary=_train([plain.normalise(line) for line in lines], size, text))

    def normalise(self, text: str) -> str:
        """Return the text in the form that is split into pieces: words with one space between them."""
        text = text.replace(WORD_BEGIN, "_")
        if self.text == "tokenised":
            return tokenised(text, self.language.name)
        text = unicodedata.normalize("NFKC", one_spelling(text))
        return " ".join((text.lower() if self.lowercase else text).split())

    def words(self, text: str) -> list[str]:
        """Return the pieces of a sentence. A run of unknown characters counts as one piece."""
        return [
            piece for word in self.normalise(text).split(" ") if word for piece in self._pieces.split(word)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the sentence of the ids up to the first END, in the codec's form of text.

        Raises:
            UserError: If an id is outside the vocabulary.
        """
        return "".join(self.vocabulary.decode(ids)).replace(WORD_BEGIN, " ").strip()

    def detokenize(self, text: str) -> str:
        """Return a decoded sentence as a person writes it: entities replaced, marks joined to words."""
        text = moses_detokenize(text) if self.text == "tokenised" else text
        return text if self.casing is None else self.casing.restore(text)

    def entries(self) -> dict[str, Any]:
        """Return the entries of the JSON text."""
        # one string, a third of the length of a list; no piece holds a space
        pieces = " ".join(self.vocabulary.words[len(SPECIALS) :])
        content = super().entries() | {"text": self.text, "pieces": pieces}
        if self.casing is None:
            return content
        return content | {
            "spellings": " ".join(self.casing.spellings),
            "exceptions": self.casing.exceptions,
        }

    @classmethod
    def from_entries(cls, content: dict[str, Any]) -> Self:
        """Return the codec of these entries."""
        vocabulary = Vocabulary((*SPECIALS, *content["pieces"].split(" ")))
        language = Language(content["language"], content["elision"])
        spellings = content.get("spellings")
        exceptions = tuple(map(tuple, content.get("exceptions", ())))
        casing = None if spellings is None else Casing(tuple(spellings.split(" ")), exceptions)
        return cls(vocabulary, language, content["lowercase"], content["text"], casing)


def joint_codecs(
    pairs: Sequence[tuple[str, str]],
    size: int,
    *,
    languages: tuple[Language, Language],
    lowercase: bool = True,
    text: TextForm = "raw",
) -> tuple[SubwordCodec, SubwordCodec]:
    """Train the codecs of source and target. They share one vocabulary of `size` pieces.

    Each codec normalises its text by the rules of its own language.

    Args:
        pairs: The sentence pairs.
        size: The number of pieces, SPECIALS included.
        languages: The languages of source and target.
        lowercase: Convert the text to lower case.
        text: The form of the text, "raw" or "tokenised".

    Raises:
        UserError: As SubwordCodec.train.
    """
    source, target = (SubwordCodec(Vocabulary(SPECIALS), each, lowercase, text) for each in languages)
    lines = [source.normalise(line) for line, _ in pairs] + [target.normalise(line) for _, line in pairs]
    vocabulary = _train(lines, size, text)
    return replace(source, vocabulary=vocabulary), replace(target, vocabulary=vocabulary)


def _train(lines: Sequence[str], size: int, text: TextForm) -> Vocabulary:
    """Return SPECIALS and the pieces that sentencepiece makes from normalised lines, the earliest first."""
    return Vocabulary((*SPECIALS, *learn_pieces(lines, size, text)))


def learn_pieces(
    lines: Sequence[str],
    size: int,
    text: TextForm,
    *,
    special_ids: dict[str, Any] = SPECIAL_IDS,
    name: str = "subwords",
) -> list[str]:
    """Return the pieces that sentencepiece makes from lines, the earliest first, without special tokens.

    Args:
        lines: The normalised sentences.
        size: The number of pieces, special tokens included.
        text: The form of the text, "raw" or "tokenised".
        special_ids: The ids of the special tokens, SPECIAL_IDS or UNKNOWN_ID.
        name: The name of the setting `size`, for messages.

    Raises:
        UserError: As SubwordCodec.train.
    """
    require_count(name, size)
    try:
        import sentencepiece
    except ImportError:
        raise UserError(
            "making subwords needs sentencepiece, which is not installed: pip install sentencepiece"
        ) from None
    if not any(lines):
        raise UserError("there are no sentences to make subwords from: give some lines with words")
    trained = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=trained,
            model_type="bpe",
            vocab_size=size,
            character_coverage=1.0,
            normalization_rule_name="identity",  # SubwordCodec.normalise did it
            # Letters and marks may share a piece in tokenised text, where tokens such as "t-shirt" and
            # "&apos;s" are separate already. In raw text they must not, or "dog." would become a piece beside
            # "dog".
            split_by_unicode_script=text == "raw",
            max_sentence_length=1 << 20,  # bytes; sentencepiece leaves out longer lines silently
            num_threads=1,
            minloglevel=2,  # only errors
            **special_ids,
            pad_piece=SPECIALS[PAD],
            unk_piece=SPECIALS[UNK],
            bos_piece=SPECIALS[START],
            eos_piece=SPECIALS[END],
        )
    except RuntimeError as error:
        raise _size_error(str(error), name, size, len(lines)) from None
    model = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())
    first = max(special_ids.values()) + 1
    return [model.id_to_piece(index) for index in range(first, model.get_piece_size())]


def _size_error(message: str, name: str, size: int, n_lines: int) -> UserError:
    """Return the error that explains a message of sentencepiece."""
    for pattern, advice in (
        (r"set it to a value <= (\d+)", "more than these sentences give: the largest size possible is {}"),
        (r"required_chars[^\d]*\d+ vs (\d+)", "fewer than the characters alone: the smallest size is {}"),
    ):
        match = re.search(pattern, message)
        if match:
            return UserError(
                f"{name} is {size}, {advice.format(match[1])} (from {quantity(n_lines, 'line')})"
            )
    return UserError(f"sentencepiece cannot make {size} subwords from {quantity(n_lines, 'line')}: {message}")
