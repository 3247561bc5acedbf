"""A tokenizer that the library `tokenizers` runs, that of every family but Marian."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from npformer.data.encoding import Encoding
from npformer.errors import UserError
from npformer.interop.library_errors import library_errors
from npformer.interop.pieces import WORD_BEGIN, Span, cut, readable_bytes, require_unicode
from npformer.interop.token_settings import ADVICE, TokenSettings, clean_up
from npformer.interop.tokenizer_classes import CLASSES, TokenizerClass, class_of, surround

_BYTE = re.compile("<0x([0-9A-F]{2})>")  # a byte of a character that Llama has no token for


class LibraryTokenizer:
    """A tokenizer of the library `tokenizers`, with its special tokens.

    Args:
        tokenizer: The `tokenizers.Tokenizer`.
        settings: The settings in the same folder.
        place: The file that it was read from, for messages.
    """

    def __init__(self, tokenizer: Any, settings: TokenSettings, place: Path) -> None:
        self._tokenizer, self._settings, self._place = tokenizer, settings, place
        # what a file may hold of the training, and transformers ignores
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._model_type = type(tokenizer.model).__name__
        if self._model_type == "BPE":
            tokenizer.model.dropout = None
        self._is_byte_level = _is_byte_level(tokenizer)
        # transformers does this for word pieces only, because it would damage the text of the others
        cleans = settings.get("clean_up_tokenization_spaces", bool, False)
        self._cleans_up = cleans and self._model_type != "BPE"
        self._added = tokenizer.get_added_tokens_decoder()

    @classmethod
    def from_folder(cls, folder: Path, family: str) -> "LibraryTokenizer":
        """Read a tokenizer from tokenizer.json.

        Raises:
            UserError: If `tokenizers` is not installed, or the file is missing or damaged.
        """
        try:
            import tokenizers
        except ImportError:
            raise UserError(
                f"the tokenizer in {folder} needs the library tokenizers, which is not installed: "
                "pip install 'npformer[hf]', or give ids instead of text"
            ) from None
        path = folder / "tokenizer.json"
        kind = class_of(TokenSettings(folder, {}), family)
        settings = TokenSettings(folder, kind.defaults if kind else {})
        if not path.is_file():
            raise UserError(
                f"{folder} has no tokenizer.json: write it with transformers, "
                "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER), or give ids instead of text"
            )
        with library_errors(f"{path} is not a tokenizer that the library tokenizers reads", ADVICE):
            tokenizer = _arranged(tokenizers.Tokenizer.from_file(str(path)), kind, settings)
            return cls(tokenizer, settings, path)

    @property
    def mask_id(self) -> int | None:
        """The id of the token that hides a word from a masked language model, or None if there is none."""
        return self._id_of("mask_token")

    @property
    def unknown_id(self) -> int | None:
        """The id of the token for text that the model does not know, or None if it knows every text."""
        return None if self._is_byte_level else self._id_of("unk_token")

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids of the tokens that stand for no text, such as padding."""
        return frozenset(index for index, token in self._added.items() if token.special)

    def encode(self, text: str) -> Encoding:
        """Return the ids of a text with the special tokens that the model expects, their pieces and offsets.

        Raises:
            UserError: If the text has a lone surrogate, or the file is damaged where this text needs it.
        """
        require_unicode(text)
        with library_errors(f"the tokenizer in {self._place} cannot read this text", ADVICE):
            encoding = self._tokenizer.encode(text)
        parts = (encoding.ids, encoding.tokens, encoding.offsets, encoding.special_tokens_mask)
        spans = []
        for index, token, (start, stop), is_added in zip(*parts, strict=True):
            # [UNK] also stands for unknown words, and is not written in the text there
            is_written = index in self._added and token in text[start:stop]
            spans.append(Span(self._own_text(index, token), start, stop, bool(is_added), is_written))
        normalizer = self._tokenizer.normalizer
        normalise = None if normalizer is None else normalizer.normalize_str
        return cut(text, encoding.ids, _without_first_space(spans), normalise)

    def plain_ids(self, text: str) -> list[int]:
        """Return the ids of a text without those that the tokenizer adds, such as a token of the beginning.

        Raises:
            UserError: As for `encode`.
        """
        require_unicode(text)
        with library_errors(f"the tokenizer in {self._place} cannot read this text", ADVICE):
            ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids. As in transformers, an id without a token stands for no text.

        Raises:
            UserError: If an id is negative.
        """
        ids = [int(index) for index in ids]
        if min(ids, default=0) < 0:
            raise UserError(f"{min(ids)} is not an id of a token: give whole numbers from 0")
        with library_errors(f"the tokenizer in {self._place} cannot decode these ids", ADVICE):
            text: str = self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return clean_up(text) if self._cleans_up else text

    def piece(self, index: int) -> str:
        """Return the token with this id for a reader, where there is no text that it comes from."""
        token = self._tokenizer.id_to_token(index)
        return f"<{index}>" if token is None else self._own_text(index, token)

    def _own_text(self, index: int, token: str) -> str:
        """Return what a token stands for: "##s" is "s", "Ġthe" and "▁the" are " the", "<0xE2>" is a byte."""
        if index in self._added:
            return token
        if self._model_type == "WordPiece":
            return token.removeprefix(self._tokenizer.model.continuing_subword_prefix)
        if self._is_byte_level:
            if any(character not in _BYTE_LEVEL for character in token):
                return token
            return readable_bytes(bytes(_BYTE_LEVEL[character] for character in token))
        byte = _BYTE.fullmatch(token)
        return readable_bytes(bytes.fromhex(byte[1])) if byte else token.replace(WORD_BEGIN, " ")

    def _id_of(self, name: str) -> int | None:
        """Return the id of the special token with a name such as "mask_token", or None if there is none."""
        token = self._settings.token(name)
        return None if token is None else self._tokenizer.token_to_id(token)


def _arranged(tokenizer: Any, kind: TokenizerClass | None, settings: TokenSettings) -> Any:
    """Return a `tokenizers.Tokenizer`, arranged as its class in transformers does, with its added tokens."""
    if kind is CLASSES["LlamaTokenizer"] and _is_byte_level(tokenizer):
        kind = None  # Llama 3 names the class, but it splits words into bytes as GPT-2 does
    if kind is not None:
        kind.arrange(tokenizer, settings)
    settings.add_to(tokenizer)
    if kind is not None and kind.ends is not None:
        surround(tokenizer, *(None if name is None else settings.token(name) for name in kind.ends))
    return tokenizer


def _without_first_space(spans: Sequence[Span]) -> list[Span]:
    """Take the characters from each token that is only the space before the first word.

    The tokenizer puts this space there, and the library says that it comes from the first character, as the
    token after it does.
    """
    spans = list(spans)
    for i, (span, after) in enumerate(pairwise(spans)):
        if span.own_text == " " and span.start == after.start and not after.is_added:
            spans[i] = span._replace(stop=span.start)
    return spans


def _byte_level_alphabet() -> dict[str, int]:
    """Return the byte for which a character stands in a vocabulary of bytes, such as that of a space for "Ġ".

    Printable bytes stand for themselves, and the others are the characters from U+0100.

    Source: Radford et al. 2019 (GPT-2), whose code calls this table bytes_to_unicode.
    """
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printed]
    return {chr(byte): byte for byte in printed} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTE_LEVEL = _byte_level_alphabet()


def _is_byte_level(tokenizer: Any) -> bool:
    """Return whether a `tokenizers.Tokenizer` has tokens of bytes, as GPT-2."""
    decoder = tokenizer.decoder  # its state is its JSON
    return decoder is not None and b'"ByteLevel"' in decoder.__getstate__()
