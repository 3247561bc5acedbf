"""Encoding, a text as tokens with their labels and places, and Tokenizer, the interface of what makes one."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Encoding(NamedTuple):
    """A text as the T tokens that a model reads, special tokens included.

    Attributes:
        ids: The T token ids.
        pieces: The T tokens for a reader, the labels of figures and tables. A special token that is not in
            the text has its name, such as "[CLS]".
        offsets: T pairs (start, stop): a token comes from text[start:stop]. The pair is (0, 0) for a special
            token that is not in the text. For a token that is only the space that a tokenizer puts before the
            first word, start and stop are the same, and its piece is "▁".
    """

    ids: list[int]
    pieces: list[str]
    offsets: list[tuple[int, int]]


class Tokenizer(Protocol):
    """The interface of a tokenizer, which converts a text to tokens and back."""

    @property
    def mask_id(self) -> int | None:
        """The id of the token that hides a word from a masked language model, or None if there is none."""

    @property
    def unknown_id(self) -> int | None:
        """The id of the token for words that the model does not know, or None if it knows every text."""

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids of the tokens that stand for no text, such as padding and the two above."""

    def encode(self, text: str) -> Encoding:
        """Return the tokens of a text, with the special tokens that the model expects."""

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids."""

    def piece(self, index: int) -> str:
        """Return the label of the token with this id."""
