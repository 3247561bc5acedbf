"""Datasets of one long text, from which a language model learns to predict the next token.

The first 90 % of the characters are for training, the last 10 % for validation. A batch has windows of the
text, all as long as the model's context, so there is no padding: in training the windows begin at random
places, and for validation one window follows the other.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.base_dataset import Dataset
from npformer.data.files import read_text
from npformer.data.loader import Ids, check_batching
from npformer.data.text_codecs import ByteCodec, CharacterCodec, LongTextCodec, PieceCodec
from npformer.errors import UserError, quantity
from npformer.validation import require_choice, require_count

TINY_SHAKESPEARE = Path(__file__).with_name("tinyshakespeare.txt.gz")  # public domain
TRAIN_SHARE = 0.9
PROMPT = 16  # the number of tokens before a sample of text
TEXT_VOCAB_SIZE = 400  # the number of subwords, by default


class TextBatch(NamedTuple):
    """Windows of a text for one training step, all of the same length.

    The model reads ids (B, T). target_out (B, T) is the text shifted by one token: target_out[:, t] is the
    token after ids[:, t].
    """

    ids: Ids
    target_out: Ids

    @property
    def inputs(self) -> tuple[Ids]:
        """The array that the model reads, in a tuple."""
        return (self.ids,)

    @property
    def tokens(self) -> int:
        """The number of tokens to predict."""
        return self.target_out.size

    def split(self, count: int) -> "list[TextBatch]":
        """Split the batch into `count` pieces whose numbers of windows differ by at most 1.

        There are fewer pieces if the batch has fewer windows.
        """
        pieces = min(count, len(self.ids))
        parts = (np.array_split(array, pieces) for array in self)
        return [TextBatch(*arrays) for arrays in zip(*parts, strict=True)]


class TextLoader:
    """A data loader, which draws windows at random places of a text.

    The windows of a batch depend only on the arguments and on the numbers of the step and of the batch in it.
    A resumed run therefore gets the same batches as an uninterrupted one, and no state has to be stored.

    Args:
        ids: (N,) the tokens of the text.
        length: The number T of tokens in a window, below N.
        seed: Determines the places of the windows.
        batch_size: The number of windows in a batch, or None.
        batch_tokens: The largest number of tokens in a batch, or None; at least one window is drawn. Exactly
            one of batch_size and batch_tokens must be given.
        accumulate: The number of batches in a step.

    Raises:
        UserError: If settings are out of range or do not go together.
    """

    def __init__(
        self,
        ids: Array,
        length: int,
        *,
        seed: int = 0,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        accumulate: int = 1,
    ) -> None:
        check_batching(seed, batch_size, batch_tokens, accumulate)
        require_count("length", length)
        self.ids, self.length, self.seed, self.accumulate = ids, length, seed, accumulate
        self.batch_size = batch_size or max(1, (batch_tokens or 0) // length)  # one of the two is given

    def steps(self, start: int = 0) -> Iterator[list[TextBatch]]:
        """Yield the batches of step start + 1, of the step after it, and so on without end.

        Raises:
            UserError: If the text is not longer than a window.
        """
        if self.length >= len(self.ids):
            raise UserError(
                f"the text has {quantity(len(self.ids), 'token')} and length is {self.length}: give a longer "
                "text, or a smaller length"
            )
        for step in count(start + 1):
            yield [self._batch(step, batch) for batch in range(self.accumulate)]

    def count_steps(self, epochs: int) -> int:
        """Return the number of steps that read `epochs` times as many tokens as the text has."""
        tokens_of_a_step = self.accumulate * self.batch_size * self.length
        return -(-epochs * len(self.ids) // tokens_of_a_step)  # rounded up

    def mean_tokens(self) -> tuple[float]:
        """Return the number of tokens in a batch."""
        return (float(self.batch_size * self.length),)

    def consecutive(self) -> list[TextBatch]:
        """Return the whole text in windows that follow each other.

        Each token but the first is predicted once. If the last window is shorter, it is a batch of its own.
        """
        whole, rest = divmod(max(0, len(self.ids) - 1), self.length)
        starts = np.arange(whole) * self.length
        cuts = range(self.batch_size, whole, self.batch_size)
        batches = [windows(self.ids, part, self.length) for part in np.split(starts, cuts) if len(part)]
        return [*batches, windows(self.ids, np.array([whole * self.length]), rest)] if rest else batches

    def _batch(self, step: int, batch: int) -> TextBatch:
        # dropout has the generators [seed, batch, step]
        rng = np.random.default_rng([self.seed, batch, step, 1])
        starts = rng.integers(0, len(self.ids) - self.length, size=self.batch_size)  # (B,)
        return windows(self.ids, starts, self.length)


def windows(ids: Array, starts: Array, length: int) -> TextBatch:
    """Return the batch of some windows of a text.

    Args:
        ids: (N,) the tokens of the text.
        starts: (B,) the places where the windows begin.
        length: The number T of tokens to predict in each window.
    """
    places = starts[:, None] + np.arange(length + 1)  # (B, T + 1)
    tokens = ids[places].astype(np.int64)
    return TextBatch(tokens[:, :-1], tokens[:, 1:])


@dataclass(frozen=True, eq=False)
class TextDataset(Dataset):
    """One long text as token ids, and the codec that converts text to ids and back.

    Attributes:
        train: (N,) the tokens for training.
        valid: (M,) the tokens for validation.
        codec: The codec.
        valid_characters: The number of characters for validation.
        name: The name of the text, for messages.
    """

    contents: ClassVar[str] = "text"

    train: Array
    valid: Array
    codec: LongTextCodec
    valid_characters: int
    description: dict[str, Any] = field(default_factory=dict)
    name: str = "the text"

    @property
    def codecs(self) -> dict[str, LongTextCodec]:
        """The codec by its role, "text"."""
        return {"text": self.codec}

    @property
    def sizes(self) -> dict[str, int]:
        """The size of the vocabulary, as a setting of a model's configuration."""
        return {"vocab_size": len(self.codec.tokens)}

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of a hash of the tokens and of the codec."""
        digest = hashlib.sha256(self.codec.to_json().encode())
        for ids in (self.train, self.valid):
            digest.update(len(ids).to_bytes(8, "little") + ids.astype("<i4").tobytes())
        return digest.hexdigest()[:12]

    @property
    def prompt(self) -> list[int]:
        """The first tokens for validation, after which the model writes a sample of text."""
        prompt: list[int] = self.valid[:PROMPT].tolist()
        return prompt

    @property
    def tokens_per_character(self) -> float | None:
        """The number of tokens for each character of the validation text, or None if it has none."""
        return len(self.valid) / self.valid_characters if self.valid_characters else None

    def loader(self, length: int, **batching: Any) -> TextLoader:
        """Return the loader of the training batches: windows of `length` tokens at random places."""
        return TextLoader(self.train, length, **batching)

    def validation_batches(self, length: int, **batching: Any) -> list[TextBatch]:
        """Return the whole validation text in windows of `length` tokens, the same in every call."""
        return TextLoader(self.valid, length, **batching).consecutive()

    def _vocabulary(self, name: str, size: int) -> str:
        return f"{self.name} has {size} different tokens"

    def check_model(self, config: Any) -> None:
        """Check that a model knows the tokens of the text, and that its context is shorter than the text.

        Raises:
            UserError: If not.
        """
        super().check_model(config)
        if config.pad_id is not None:
            raise UserError(
                f"pad_id is {config.pad_id}, and the windows of a text have no padding: leave it out"
            )
        if config.context >= len(self.train):
            raise UserError(
                f"{self.name} has {quantity(len(self.train), 'token')} for training, and the model's context "
                f"is {config.context}: give a longer text, or a smaller context (--set context="
                f"{max(1, len(self.train) - 1)})"
            )


def text_dataset(
    file: str | PathLike[str] | None = None, *, tokens: str = "characters", vocab_size: int | None = None
) -> TextDataset:
    """Return the dataset of a text file: its first 90 % for training and its last 10 % for validation.

    Args:
        file: The file, plain or gzip, in UTF-8; with bytes as tokens, any file. By default, Tiny Shakespeare:
            40,000 lines of plays, 1.1 million characters.
        tokens: "characters", "bytes" or "subwords".
        vocab_size: The number of subwords, 400 by default.

    Raises:
        UserError: If the file cannot be read or has fewer than two different characters, or if settings do
            not go together.
    """
    require_choice("tokens", tokens, tuple(_CODECS))
    if vocab_size is not None and tokens != "subwords":
        raise UserError(f"vocab_size is {vocab_size} and tokens is {tokens!r}: it is for subwords only")
    text = read_text(TINY_SHAKESPEARE if file is None else file, any_bytes=tokens == "bytes")
    name = "Tiny Shakespeare" if file is None else str(file)
    if len(set(text)) < 2:
        raise UserError(
            f"{name} has only the character {text[:1]!r}: give a text with at least two different ones"
        )
    cut = int(TRAIN_SHARE * len(text))
    train, valid = text[:cut], text[cut:]
    size = TEXT_VOCAB_SIZE if vocab_size is None else vocab_size
    codec = _CODECS[tokens](text, train, size)
    dtype = np.min_scalar_type(len(codec.tokens))
    train_ids, valid_ids = (np.array(codec.encode(part), dtype) for part in (train, valid))
    description = {
        "kind": "text",
        "file": None if file is None else str(Path(file).absolute()),
        "tokens": tokens,
        "vocab_size": size if tokens == "subwords" else None,  # written out, because the default may change
    }
    return TextDataset(train_ids, valid_ids, codec, len(valid), description, name)


# the codec of a text, of which a part is for training: a character of the other part is known, too
_CODECS: dict[str, Callable[[str, str, int], LongTextCodec]] = {
    "characters": lambda text, train, size: CharacterCodec.from_text(text),
    "bytes": lambda text, train, size: ByteCodec(),
    "subwords": lambda text, train, size: PieceCodec.train(train, size, characters=set(text)),
}
TOKENS = tuple(_CODECS)
