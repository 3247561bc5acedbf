"""The tokenizer of a BART, an mBART or a T5, as an encoder-decoder model needs it: for texts that it reads,
and for texts that it writes.

A tokenizer.json has one template of special tokens, that of texts that are read: BART reads `<s> text </s>`,
mBART `text </s> code` or `code text </s>`, T5 `text </s>`. What a decoder writes ends with the end symbol,
and begins with the token that generation_config.json forces (`forced_bos_token_id`), if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from npformer.data.encoding import Encoding
from npformer.errors import UserError
from npformer.interop.library_tokenizer import LibraryTokenizer


class SourceTokenizer:
    """The tokenizer of the texts that the encoder reads. An empty text is the end symbol alone.

    Args:
        tokenizer: The tokenizer of the folder.
        end_id: The id of the end symbol.
        folder: The folder, for messages.

    Raises:
        UserError: If the tokenizer does not write the end symbol, so that it belongs to another model.
    """

    def __init__(self, tokenizer: LibraryTokenizer, end_id: int, folder: Path) -> None:
        self._tokenizer, self._end_id = tokenizer, end_id
        added = tokenizer.encode("").ids
        if end_id not in added:
            raise UserError(
                f"{folder}: the tokenizer adds the ids {added} to a text, and the end symbol of the model is "
                f"{end_id}: use the files of one model"
            )
        self._n_before = added.index(end_id)  # the special tokens before a text
        self._n_after = len(added) - self._n_before

    @property
    def mask_id(self) -> int | None:
        """The id of the token that hides a text, or None if there is none."""
        return self._tokenizer.mask_id

    @property
    def unknown_id(self) -> int | None:
        """The id of the token for text that the model does not know, or None if it knows every text."""
        return self._tokenizer.unknown_id

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids of the tokens that stand for no text, such as padding."""
        return self._tokenizer.special_ids

    def encode(self, text: str) -> Encoding:
        """Return the tokens of a text as LibraryTokenizer does."""
        encoding = self._tokenizer.encode(text)
        is_empty = len(encoding.ids) == self._n_before + self._n_after
        return self._with_end(Encoding([], [], [])) if is_empty else encoding

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, without special tokens."""
        return self._tokenizer.decode(ids)

    def piece(self, index: int) -> str:
        """Return the token with this id for a reader."""
        return self._tokenizer.piece(index)

    def _with_end(self, encoding: Encoding) -> Encoding:
        """Return an encoding and the end symbol after it."""
        ids, pieces, offsets = encoding
        return Encoding([*ids, self._end_id], [*pieces, self.piece(self._end_id)], [*offsets, (0, 0)])


class TargetTokenizer(SourceTokenizer):
    """The tokenizer of the texts that the decoder writes: the forced first token, the text, the end symbol.

    Args:
        tokenizer: The tokenizer of the folder.
        end_id: The id of the end symbol.
        folder: The folder, for messages.
        first: The id of the forced first token, or None for no such token.

    Raises:
        UserError: If the tokenizer does not write the end symbol, so that it belongs to another model.
    """

    def __init__(
        self, tokenizer: LibraryTokenizer, end_id: int, folder: Path, first: int | None = None
    ) -> None:
        super().__init__(tokenizer, end_id, folder)
        self._first = first

    def encode(self, text: str) -> Encoding:
        """Return the tokens of a text."""
        encoding = self._tokenizer.encode(text)
        first, last = self._n_before, len(encoding.ids) - self._n_after
        ids, pieces = encoding.ids[first:last], encoding.pieces[first:last]
        offsets = encoding.offsets[first:last]
        if self._first is not None:
            ids, pieces = [self._first, *ids], [self.piece(self._first), *pieces]
            offsets = [(0, 0), *offsets]
        return self._with_end(Encoding(ids, pieces, offsets))
