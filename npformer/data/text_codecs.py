r"""Codecs of a long text, which keep every line break: its characters, its bytes, or its subwords.

A language model that continues a text needs no padding, no start and no end. So no id is set aside for them:
the ids are 0 .. len(codec.tokens) - 1, and every id stands for a part of a text.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from npformer.data.subwords import UNKNOWN_ID, WORD_BEGIN, Pieces, learn_pieces
from npformer.data.vocabulary import SavedCodec, read_codec
from npformer.errors import UserError

LINE_END = "\n"
LONGEST_LINE = 100_000  # characters; sentencepiece would leave out lines of more than a megabyte


@dataclass(frozen=True)
class CharacterCodec(SavedCodec):
    """A codec of characters: the id of a character is its position in `characters`.

    Raises:
        UserError: If there are no characters, or one occurs twice.
    """

    kind: ClassVar[str] = "npformer character codec"
    types: ClassVar[dict[str, Any]] = {"characters": str}

    characters: str
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require_distinct("characters", self.characters)
        object.__setattr__(self, "_ids", {character: i for i, character in enumerate(self.characters)})

    @classmethod
    def from_text(cls, text: str) -> "CharacterCodec":
        """Return the codec of the characters of a text, in the order of their code points."""
        return cls("".join(sorted(set(text))))

    @property
    def tokens(self) -> tuple[str, ...]:
        """The characters by their ids."""
        return tuple(self.characters)

    def encode(self, text: str) -> list[int]:
        """Return the id of each character.

        Raises:
            UserError: If a character is unknown. The message names the first one.
        """
        _require_known(text, self._ids)
        return [self._ids[character] for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids.

        Raises:
            UserError: If an id is outside the vocabulary.
        """
        return "".join(_tokens_of(ids, self.characters))


@dataclass(frozen=True)
class ByteCodec(SavedCodec):
    r"""A codec of the bytes of a text in UTF-8: the ids are 0 .. 255, and no text is unknown.

    A text may also be any bytes, decoded with the error handler "surrogateescape": these are encoded to the
    same bytes.
    """

    kind: ClassVar[str] = "npformer byte codec"

    @property
    def tokens(self) -> tuple[str, ...]:
        r"""The bytes by their ids: their characters in Latin-1."""
        return tuple(map(chr, range(256)))

    def encode(self, text: str) -> list[int]:
        """Return the bytes of a text."""
        return list(text.encode("utf-8", "surrogateescape"))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the bytes. Bytes that are not UTF-8 become U+FFFD, the replacement character.

        Raises:
            UserError: If an id is outside the vocabulary.
        """
        return bytes(map(ord, _tokens_of(ids, self.tokens))).decode("utf-8", "replace")


@dataclass(frozen=True)
class PieceCodec(SavedCodec):
    r"""A codec of subwords: it splits "dogs ran\n" into "▁dog", "s", "▁ran" and "\n".

    A line is split at its single spaces, and each word is split into pieces, which begin with WORD_BEGIN in
    place of the space. So every text is decoded exactly; only WORD_BEGIN itself becomes "_".

    Args:
        tokens: The end of a line, then the pieces in the order in which training made them, and at last the
            single characters.

    Raises:
        UserError: If the end of a line is not the first token, or if a token occurs twice.
    """

    kind: ClassVar[str] = "npformer piece codec"
    types: ClassVar[dict[str, Any]] = {"tokens": list[str]}

    tokens: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)
    _pieces: Pieces = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tuple(self.tokens))  # a list in JSON
        _require_distinct("tokens", self.tokens)
        if self.tokens[0] != LINE_END:
            raise UserError(f"the first token is {self.tokens[0]!r}: it must be the end of a line")
        object.__setattr__(self, "_ids", {token: i for i, token in enumerate(self.tokens)})
        object.__setattr__(self, "_pieces", Pieces(self.tokens[1:]))

    @classmethod
    def train(cls, text: str, size: int, *, characters: Iterable[str] = ()) -> "PieceCodec":
        """Train a codec by byte-pair encoding of a text. The same text gives the same pieces.

        Args:
            text: The text.
            size: The number of tokens. There are more if `characters` has some that are not in the text.
            characters: Further characters to know.

        Raises:
            UserError: If sentencepiece is not installed, or if the text does not give `size` pieces.
        """
        text = _without_word_begin(text)
        lines = [
            line[start : start + LONGEST_LINE]
            for line in text.split(LINE_END)
            for start in range(0, len(line), LONGEST_LINE)
        ]
        pieces = learn_pieces(lines, size, "raw", special_ids=UNKNOWN_ID, name="vocab_size")
        needed = {*text, *_without_word_begin("".join(characters)), WORD_BEGIN} - {" ", LINE_END}
        return cls((LINE_END, *pieces, *sorted(needed.difference(pieces))))

    def encode(self, text: str) -> list[int]:
        """Return the ids of the pieces of a text, and of the ends of its lines.

        Raises:
            UserError: If a character is unknown. The message names the first one.
        """
        text = _without_word_begin(text)
        _require_known(text, {*self._ids, " "})
        lines = ([self._ids[piece] for piece in self._split(line)] for line in text.split(LINE_END))
        ids = list(next(lines))
        for line in lines:
            ids += [0, *line]
        return ids

    def _split(self, line: str) -> list[str]:
        """Return the pieces of one line."""
        if not line:
            return []
        return [piece for word in line.split(" ") for piece in self._pieces.split(word)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids.

        Raises:
            UserError: If an id is outside the vocabulary.
        """
        text = "".join(_tokens_of(ids, self.tokens))
        # the first word of a line has no space before it
        return re.sub(f"^{WORD_BEGIN}", "", text, flags=re.MULTILINE).replace(WORD_BEGIN, " ")


LongTextCodec = CharacterCodec | ByteCodec | PieceCodec


def text_codec_from_json(text: str) -> LongTextCodec:
    """Return the codec of a long text whose to_json wrote the text.

    Raises:
        UserError: If the text is not one that such a codec wrote.
    """
    codec: LongTextCodec = read_codec(text, CharacterCodec, ByteCodec, PieceCodec)
    return codec


def _require_distinct(what: str, tokens: Sequence[str]) -> None:
    """Raise UserError if there are no tokens, or if one occurs twice or is empty."""
    if not tokens or len(set(tokens)) < len(tokens) or "" in tuple(tokens):
        raise UserError(f"the {what} of a codec are empty or occur twice: give each of them once")


def _require_known(text: str, known: Iterable[str]) -> None:
    """Raise UserError if a text has a character that is not known."""
    unknown = set(text).difference(known)
    if unknown:
        first = next(character for character in text if character in unknown)
        raise UserError(
            f"the text has the character {first!r}, which the model has not seen in training: leave it out"
        )


def _tokens_of(ids: Iterable[int], tokens: Sequence[str]) -> list[str]:
    """Return the tokens of ids, and raise UserError if one is outside the vocabulary."""
    found = []
    for index in map(int, ids):
        if not 0 <= index < len(tokens):
            raise UserError(
                f"the id {index} is outside the vocabulary of {len(tokens)} tokens: decode with the codec "
                "that the model was trained with"
            )
        found.append(tokens[index])
    return found


def _without_word_begin(text: str) -> str:
    return text.replace(WORD_BEGIN, "_")
