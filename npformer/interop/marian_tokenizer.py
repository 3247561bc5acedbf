"""The tokenizer of Marian: a sentencepiece model for each language, and one vocabulary, vocab.json.

The models also normalise the text. transformers recommends sacremoses when it loads such a tokenizer, but the
ids do not depend on it.
"""

import copy
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from npformer.data.encoding import Encoding
from npformer.errors import UserError
from npformer.interop.library_errors import library_errors
from npformer.interop.pieces import WORD_BEGIN, Span, cut, require_unicode
from npformer.interop.token_settings import ADVICE, TokenSettings, clean_up
from npformer.storage.bounded import read_up_to
from npformer.storage.json_files import MOST_BYTES, read_json, require_object
from npformer.validation import has_type

DEFAULTS = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
FILES = ("source.spm", "target.spm", "vocab.json")
_LANGUAGE = re.compile(">>.*?<<", re.DOTALL)  # ">>deu<<" before a sentence chooses the target language


class MarianTokenizer:
    """A tokenizer with a sentencepiece model for each language and one vocabulary for both.

    Args:
        source: The `sentencepiece.SentencePieceProcessor` of the source language.
        target: That of the target language.
        vocabulary: The ids of the pieces.
        settings: The settings in the same folder.
    """

    def __init__(self, source: Any, target: Any, vocabulary: dict[str, int], settings: TokenSettings) -> None:
        self._source, self._target = source, target
        self._reads = source  # the model for the texts that `encode` reads
        self._vocabulary, self._settings = vocabulary, settings
        self._cleans_up = settings.get("clean_up_tokenization_spaces", bool, False)
        self._added = _added_ids(vocabulary, settings)
        self._tokens = {index: piece for piece, index in vocabulary.items()}
        self._tokens |= {index: token for token, index in self._added.items()}
        longest_first = sorted(self._added, key=len, reverse=True)
        self._added_pattern = re.compile("|".join(map(re.escape, longest_first)))

    @classmethod
    def from_folder(cls, folder: Path) -> "MarianTokenizer":
        """Read a tokenizer from source.spm, target.spm and vocab.json.

        Raises:
            UserError: If sentencepiece is not installed, a file is missing or damaged, or a setting is not
                supported.
        """
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise UserError(
                f"{folder} has no {' and no '.join(missing)}: save the tokenizer there with transformers, "
                "or give ids instead of text"
            )
        settings = TokenSettings(folder, DEFAULTS)
        _require_supported(settings)
        path = folder / "vocab.json"
        vocabulary = require_object(read_json(path, str(path), ADVICE), str(path), ADVICE)
        if not all(has_type(index, int) and index >= 0 for index in vocabulary.values()):
            raise UserError(f"{path} has an id that is not a whole number of 0 or more: {ADVICE}")
        unknown = settings.token("unk_token")
        if unknown not in vocabulary:
            raise UserError(f"{path} has no token {unknown!r} for unknown pieces: {ADVICE}")
        source, target = (_processor(folder / name) for name in FILES[:2])
        return cls(source, target, vocabulary, settings)

    @cached_property
    def for_target(self) -> "MarianTokenizer":
        """The same tokenizer for texts of the target language."""
        tokenizer = copy.copy(self)
        tokenizer._reads = self._target
        return tokenizer

    @property
    def mask_id(self) -> None:
        """None: a translator has no such token."""
        return None

    @property
    def unknown_id(self) -> int:
        """The id of the token for pieces that the vocabulary does not have."""
        return self._special_id("unk_token")

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids of the tokens that stand for no text: the end, padding and the unknown piece."""
        return frozenset(self._added[token.content] for token in self._settings.special_tokens())

    def encode(self, text: str) -> Encoding:
        """Return the ids of a text of the source language, the end last, with their pieces and offsets.

        Raises:
            UserError: If the text has a lone surrogate, or the file is damaged where this text needs it.
        """
        require_unicode(text)
        ids, spans = [], []
        with library_errors("sentencepiece cannot read this text with the model of this folder", ADVICE):
            for token, span in self._spans(text):
                ids.append(self._id(token))
                spans.append(span)
        end = self._special_id("eos_token")
        return cut(text, [*ids, end], [*spans, Span(self._token(end), 0, 0, is_added=True)])

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids.

        Raises:
            UserError: If an id is not in the vocabulary.
        """
        skipped = self.special_ids if skip_special_tokens else frozenset()
        tokens = [self._token(int(index)) for index in ids if index not in skipped]
        special = {self._tokens[index] for index in self.special_ids}
        text = ""
        for is_special, group in groupby(tokens, key=special.__contains__):
            run = list(group)
            # transformers joins the pieces with the model of the source, those of the target language too
            text += "".join(f"{token} " for token in run) if is_special else self._source.decode(run)
        text = text.replace(WORD_BEGIN, " ").strip()
        return clean_up(text) if self._cleans_up else text

    def piece(self, index: int) -> str:
        """Return the token with this id for a reader, where there is no text that it comes from.

        Raises:
            UserError: If the id is not in the vocabulary.
        """
        return self._token(index).replace(WORD_BEGIN, " ")

    def _spans(self, text: str) -> Iterator[tuple[str, Span]]:
        """Yield the tokens of a text in the vocabulary's spelling, each with its characters."""
        for start, stop in self._parts(text):
            part = text[start:stop]
            if part in self._added:
                yield part, Span(part, start, stop)
                continue
            language = _LANGUAGE.match(part)
            if language:
                yield language[0], Span(language[0], start, start + language.end())
                start += language.end()
            for piece, first, last in _pieces(text[start:stop], self._reads):
                yield piece, Span(piece.replace(WORD_BEGIN, " "), start + first, start + last)

    def _parts(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the added tokens of a text, such as "</s>", and the parts between begin and end."""
        place = 0
        for found in self._added_pattern.finditer(text):
            if place < found.start():
                yield place, found.start()
            yield found.span()
            place = found.end()
        if place < len(text):
            yield place, len(text)

    def _id(self, token: str) -> int:
        """Return the id of a token, or that of the unknown piece."""
        return self._added.get(token, self._vocabulary.get(token, self.unknown_id))

    def _token(self, index: int) -> str:
        """Return the token with an id."""
        if index not in self._tokens:
            raise UserError(
                f"the id {index} is not in the vocabulary of {self._settings.path.parent}: "
                f"give ids from 0 to {max(self._tokens)}"
            )
        return self._tokens[index]

    def _special_id(self, name: str) -> int:
        return self._added[self._settings.token(name) or DEFAULTS[name]]


def _added_ids(vocabulary: dict[str, int], settings: TokenSettings) -> dict[str, int]:
    """Return the ids of the tokens that are found in a text before sentencepiece splits it."""
    added = {token.content: index for index, token in settings.added_tokens().items()}
    for token in settings.special_tokens():
        if token.content not in added:  # a token that the vocabulary lacks has the next free id
            added[token.content] = vocabulary.get(token.content, len(vocabulary | added))
    return added


def _require_supported(settings: TokenSettings) -> None:
    """Raise UserError if the settings ask for what this tokenizer does not do."""
    if settings.get("separate_vocabs", bool, False):
        raise UserError(
            f"{settings.path} has separate_vocabs, and npformer reads only Marian tokenizers with one "
            "vocabulary: give ids instead of text"
        )
    if settings.get("sp_model_kwargs", dict, {}):
        raise UserError(
            f"{settings.path} has sp_model_kwargs, which can make the ids random: "
            "remove this entry from the file"
        )
    for token in (*settings.added_tokens().values(), *settings.special_tokens()):
        if token.single_word or token.lstrip or token.rstrip:
            raise UserError(
                f"the token {token.content!r} in {settings.path} has single_word, lstrip or rstrip, "
                "which npformer does not support for Marian: give ids instead of text"
            )


def _processor(path: Path) -> Any:
    """Return the sentencepiece model in a file."""
    try:
        import sentencepiece
    except ImportError:
        raise UserError(
            f"the tokenizer in {path.parent} needs the library sentencepiece, which is not installed: "
            "pip install 'npformer[hf]', or give ids instead of text"
        ) from None
    processor = sentencepiece.SentencePieceProcessor()
    data = read_up_to(path, MOST_BYTES, ADVICE)
    with library_errors(f"{path} is not a model that sentencepiece reads", ADVICE):
        processor.LoadFromSerializedProto(data)
    return processor


def _pieces(text: str, processor: Any) -> list[tuple[str, int, int]]:
    """Return the pieces of a text, each with where the characters that it comes from begin and end."""
    pieces = processor.encode(text, out_type=str)
    if not pieces:
        return []
    # normalised[i] comes from the characters from begins[i]; the last number is the end of the text
    normalised, begins = processor.normalize(text, with_offsets=True)
    ends = list(begins)
    for i in reversed(range(len(normalised))):  # several characters may come from one, such as "1⁄2" from "½"
        ends[i] = begins[i + 1] if begins[i + 1] > begins[i] else ends[i + 1]
    places = [i for i, character in enumerate(normalised) for _ in character.encode()]  # of each byte
    found, byte = [], 0
    for piece in pieces:
        is_byte = processor.is_byte(processor.piece_to_id(piece))  # such as <0xE2>
        n_bytes = 1 if is_byte else len(piece.encode())
        found.append((piece, begins[places[byte]], ends[places[byte + n_bytes - 1]]))
        byte += n_bytes
    piece, start, _ = found[0]
    if piece == WORD_BEGIN and len(begins) > 2 and start == begins[1]:  # the space before the first word
        found[0] = (piece, start, start)
    return found
