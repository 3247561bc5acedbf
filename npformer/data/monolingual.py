"""Datasets of sentences without translations, from which a masked language model learns to fill gaps.

In each batch, some tokens are hidden and have to be predicted, see `masked_batch`. For validation, the same
tokens are hidden each time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from npformer.data.base_dataset import Dataset
from npformer.data.codecs import TextCodec
from npformer.data.corpus import builtin_corpus
from npformer.data.files import read_lines
from npformer.data.sentences import Sentence, SentenceBatch, SentenceLoader, masked_batch, with_mask
from npformer.data.tokens import LANGUAGES, language_of
from npformer.data.vocabulary import PAD, SPECIALS
from npformer.errors import UserError, quantity

# without a validation file, the last lines of the training file are for validation: one in 20, at most 1000
VALID_SHARE, MOST_VALID = 20, 1000


@dataclass(frozen=True, eq=False)
class SentenceDataset(Dataset):
    """Sentences as token ids, for a masked language model, and the codec that converts text to ids and back.

    A sentence that is longer than the model is divided. Only pieces without a known word are left out, since
    nothing can be hidden in them.

    Attributes:
        train: The sentences for training.
        valid: The sentences for validation.
        codec: The codec, whose last word is MASK.
        lost_case: True if the text has capitals and was converted to lower case.

    Raises:
        UserError: If there is nothing to train on.
    """

    contents: ClassVar[str] = "sentences"

    train: list[list[int]]
    valid: list[list[int]]
    codec: TextCodec
    description: dict[str, Any] = field(default_factory=dict)
    lost_case: bool = False

    def __post_init__(self) -> None:
        if not self._pieces(self.train, 1):
            raise UserError("the dataset has no training sentences with known words: give more text")

    @property
    def codecs(self) -> dict[str, TextCodec]:
        """The codec by its role, "sentences"."""
        return {"sentences": self.codec}

    @property
    def sizes(self) -> dict[str, int]:
        """The size of the vocabulary, as a setting of a model's configuration."""
        return {"vocab_size": len(self.codec.tokens)}

    @property
    def remarks(self) -> list[str]:
        """A sentence for the user if capitals were lost."""
        lost = "the text has capitals and is converted to lower case: --cased keeps the capitals"
        return [lost] if self.lost_case else []

    def loader(self, length: int, **batching: Any) -> SentenceLoader:
        """Return the loader of the training batches, in which other tokens are hidden each time."""
        return self._loader(self.train, length, batching)

    def validation_batches(self, length: int, **batching: Any) -> list[SentenceBatch]:
        """Return all validation sentences in batches, with the same hidden tokens in every call."""
        return self._loader(self.valid, length, batching).epoch()

    def check_model(self, config: Any) -> None:
        """Check that a model knows the tokens of the sentences, and can read one with the end symbol.

        Raises:
            UserError: If not.
        """
        super().check_model(config)
        if config.pad_id != PAD:
            raise UserError(f"pad_id is {config.pad_id}: the vocabulary has padding at {PAD}")
        if config.max_length < 2:
            raise UserError(
                f"max_length is {config.max_length}: it must be 2 or more, for a word and the end symbol"
            )

    def _loader(self, sentences: list[list[int]], length: int, batching: dict[str, Any]) -> SentenceLoader:
        """Return the loader of some sentences for a model that reads `length` tokens."""
        mask_id = len(self.codec.tokens) - 1

        def hide(pieces: Sequence[Sentence], rng: np.random.Generator) -> SentenceBatch:
            return masked_batch(pieces, mask_id, rng)

        return SentenceLoader(self._pieces(sentences, length - 1), hide, **batching)

    @staticmethod
    def _pieces(sentences: list[list[int]], most: int) -> list[list[int]]:
        """Return the sentences in pieces of at most `most` tokens, without pieces that have no known word."""
        pieces = (ids[i : i + most] for ids in sentences for i in range(0, len(ids), most))
        return [piece for piece in pieces if max(piece) >= len(SPECIALS)]


def sentence_dataset(
    file: str | PathLike[str] | None = None,
    *,
    vocab_size: int | None = None,
    min_count: int = 1,
    lowercase: bool = True,
) -> SentenceDataset:
    """Return the dataset of the sentences of a file, for a masked language model.

    Args:
        file: The file, plain or gzip, in UTF-8, with a sentence or a paragraph on each line. By default, the
            English sentences of the built-in corpus.
        vocab_size: The largest size of the vocabulary, with special tokens.
        min_count: Leave words out of the vocabulary that occur less often in the training sentences.
        lowercase: Convert the text to lower case.

    Raises:
        UserError: If the file cannot be read or has fewer than two lines with words, or if a setting is out
            of range.
    """
    n_specials = len(SPECIALS) + 1  # with MASK
    if vocab_size is not None and vocab_size <= n_specials:
        raise UserError(
            f"vocab_size is {vocab_size}: it must be more than {n_specials}, the number of special tokens"
        )
    train, valid = _builtin_lines() if file is None else _file_lines(file)
    words = TextCodec.from_lines(
        train,
        language=LANGUAGES["en"] if file is None else language_of(Path(file)),
        lowercase=lowercase,
        min_count=min_count,
        max_size=None if vocab_size is None else vocab_size - 1,
    )
    codec = with_mask(words)
    description = {
        "kind": "sentences",
        "file": None if file is None else str(Path(file).absolute()),
        "vocab_size": vocab_size,
        "min_count": min_count,
        "lowercase": lowercase,
    }
    train_ids, valid_ids = ([codec.encode(line) for line in part] for part in (train, valid))
    lost_case = lowercase and any(line != line.lower() for line in train)
    return SentenceDataset(train_ids, valid_ids, codec, description, lost_case)


def _builtin_lines() -> tuple[list[str], list[str]]:
    """Return the English sentences of the built-in corpus for training and validation."""
    train, valid, _ = builtin_corpus()
    return [pair.english for pair in train], [pair.english for pair in valid]


def _file_lines(file: str | PathLike[str]) -> tuple[list[str], list[str]]:
    """Return the lines of a file for training, and those at its end for validation, without empty lines."""
    lines = [line for line in read_lines(file) if line.strip()]
    if len(lines) < 2:
        raise UserError(
            f"{file} has {quantity(len(lines), 'line')} with text, and one is for validation: give a file "
            "with a sentence on each line"
        )
    n_valid = min(MOST_VALID, max(1, len(lines) // VALID_SHARE))
    return lines[:-n_valid], lines[-n_valid:]
