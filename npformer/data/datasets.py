"""Datasets: sentence pairs as ids, cut into training, validation and test, with their vocabularies.

Each comes with a description in plain values from which open_dataset makes it anew when a run goes on, and
with a fingerprint that tells whether it is still the same.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from npformer.data.batches import Example
from npformer.data.corpus import builtin_corpus
from npformer.data.files import read_parallel
from npformer.data.tasks import copy_task, reverse_task
from npformer.data.tokens import LANGUAGES, Language, tokenize
from npformer.data.vocabulary import SPECIALS, TextCodec, Vocabulary
from npformer.errors import UserError

DIRECTIONS = ("en-fr", "fr-en")
TASKS = {"copy": copy_task, "reverse": reverse_task}

# without a validation file: one pair in 20 off the end of the training file, at most 1000
VALID_SHARE, MOST_VALID = 20, 1000

FilePath = str | PathLike[str]
Files = tuple[FilePath, FilePath]
Words = tuple[list[str], list[str]]  # a sentence and its translation, split


@dataclass(frozen=True)
class Dataset:
    """Sentence pairs as ids, and how to get from text to ids and back.

    Errors: UserError where there is nothing to train on.
    """

    train: list[Example]
    valid: list[Example]
    test: list[Example]
    source: TextCodec
    target: TextCodec
    description: dict[str, Any] = field(default_factory=dict)
    dropped: int = 0  # pairs left out: empty or too long

    def __post_init__(self) -> None:
        if not self.train:
            raise UserError("the dataset has no training sentences: give more, or allow longer ones")

    @property
    def sizes(self) -> dict[str, int]:
        """The vocabularies' sizes, as settings of a TransformerConfig."""
        return {
            "source_vocab": len(self.source.vocabulary),
            "target_vocab": len(self.target.vocabulary),
        }

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that differ where training or validation sentences, or words, differ."""
        content = [self.train, self.valid, self.source.to_json(), self.target.to_json()]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


def open_dataset(description: dict[str, Any]) -> Dataset:
    """The dataset that has this description; UserError for a description of no kind known here."""
    settings = dict(description)
    kind = settings.pop("kind", None)
    makers: dict[Any, Callable[..., Dataset]]
    makers = {"builtin": builtin_dataset, "files": files_dataset, "task": task_dataset}
    if kind not in makers:
        raise UserError(f"there is no kind of dataset {kind!r}: give the dataset itself to go on")
    try:
        return makers[kind](**settings)
    except TypeError as error:
        raise UserError(f"this is not the description of a dataset of kind {kind!r}: {error}") from None


def builtin_dataset(direction: str = "en-fr", *, seed: int = 0, shared: bool = False) -> Dataset:
    """The built-in English-French corpus, whose test asks for words together that training keeps apart."""
    if direction not in DIRECTIONS:
        raise UserError(f"direction is {direction!r}: choose one of {', '.join(DIRECTIONS)}")
    names = direction.split("-")
    languages = (LANGUAGES[names[0]], LANGUAGES[names[1]])
    parts: list[list[Words]] = []
    for pairs in builtin_corpus(seed=seed):
        texts = ({"en": pair.english, "fr": pair.french} for pair in pairs)
        parts.append([_split((text[names[0]], text[names[1]]), languages) for text in texts])
    codecs = _make_codecs(parts[0], languages, shared=shared)
    description = {"kind": "builtin", "direction": direction, "seed": seed, "shared": shared}
    train, valid, test = (_encode(part, codecs) for part in parts)
    return Dataset(train, valid, test, *codecs, description)


def files_dataset(
    source: FilePath,
    target: FilePath,
    *,
    valid: Files | None = None,
    test: Files | None = None,
    max_length: int | None = None,
    limit: int | None = None,
    vocab_size: int | None = None,
    min_count: int = 1,
    shared: bool = False,
    lowercase: bool = True,
) -> Dataset:
    """Two files whose lines translate each other; their suffixes, as in train.en, tell the languages.

    max_length: leave out pairs with a side of more tokens, its end symbol counted. limit: read that many
    training pairs and no more. Without valid, the last pairs are for validation: one in 20, at most 1000.
    The words of the training pairs make the vocabularies: one a side, or one for both if shared.
    Errors: UserError for files that cannot be read or leave no pairs, and for settings out of range.
    """
    if max_length is not None and max_length < 2:
        raise UserError(f"max_length is {max_length}: it must be 2 or more, for a word and the end symbol")
    text = read_parallel(source, target, limit=limit)
    languages = (text.source_language, text.target_language)
    pairs = _fitting(text.pairs, languages, max_length, lowercase)
    dropped = text.dropped + len(text.pairs) - len(pairs)
    training, validation = _cut(pairs)
    if valid is not None:
        training = pairs
        validation = _fitting(read_parallel(*valid).pairs, languages, max_length, lowercase)
    testing = [] if test is None else _fitting(read_parallel(*test).pairs, languages, None, lowercase)
    if not training:
        raise UserError(
            f"no pair of {source} and {target} is left to train on: give more lines, or a larger max_length"
        )
    codecs = _make_codecs(training, languages, shared, lowercase, min_count=min_count, max_size=vocab_size)
    description = _where(source, target, valid, test) | {
        "max_length": max_length,
        "limit": limit,
        "vocab_size": vocab_size,
        "min_count": min_count,
        "shared": shared,
        "lowercase": lowercase,
    }
    train_ids, valid_ids, test_ids = (_encode(part, codecs) for part in (training, validation, testing))
    return Dataset(train_ids, valid_ids, test_ids, *codecs, description, dropped)


def _cut(pairs: list[Words]) -> tuple[list[Words], list[Words]]:
    """The training pairs, and those at the end that are kept for validation."""
    n_valid = min(MOST_VALID, max(1, len(pairs) // VALID_SHARE))
    return pairs[:-n_valid], pairs[-n_valid:]


def _where(source: FilePath, target: FilePath, valid: Files | None, test: Files | None) -> dict[str, Any]:
    """The files' part of a description: paths that still lead there when the run goes on elsewhere."""

    def absolute(path: FilePath) -> str:
        return str(Path(path).absolute())

    return {
        "kind": "files",
        "source": absolute(source),
        "target": absolute(target),
        "valid": valid and [absolute(path) for path in valid],
        "test": test and [absolute(path) for path in test],
    }


def task_dataset(
    task: str = "copy", *, n: int = 2000, length: int = 8, vocab: int = 20, seed: int = 0
) -> Dataset:
    """Sequences to "copy" or to "reverse": n to train on, and a tenth of that to validate and to test on.

    The words are numerals, so a trained model can be asked about "3 1 2" as about any sentence.
    """
    if task not in TASKS:
        raise UserError(f"task is {task!r}: choose one of {', '.join(TASKS)}")
    rng = np.random.default_rng(seed)
    settings: dict[str, Any] = {"length": length, "vocab": vocab, "rng": rng}
    n_test = max(1, n // 10)
    train, valid, test = (TASKS[task](size, **settings) for size in (n, n_test, n_test))
    numerals = map(str, range(vocab - len(SPECIALS)))
    codec = TextCodec(Vocabulary((*SPECIALS, *numerals)))
    description = {"kind": "task", "task": task, "n": n, "length": length, "vocab": vocab, "seed": seed}
    return Dataset(train, valid, test, codec, codec, description)


def _fitting(
    pairs: Iterable[tuple[str, str]],
    languages: tuple[Language, Language],
    max_length: int | None,
    lowercase: bool,
) -> list[Words]:
    """The pairs split into words, those that have some on both sides and not too many."""
    words = [_split(pair, languages, lowercase) for pair in pairs]
    longest = float("inf") if max_length is None else max_length - 1  # the end symbol takes one
    return [pair for pair in words if all(0 < len(side) <= longest for side in pair)]


def _split(pair: tuple[str, str], languages: tuple[Language, Language], lowercase: bool = True) -> Words:
    source, target = (
        tokenize(text, lowercase=lowercase, elision=language.elision)
        for text, language in zip(pair, languages, strict=True)
    )
    return source, target


def _make_codecs(
    pairs: Sequence[Words],
    languages: tuple[Language, Language],
    shared: bool = False,
    lowercase: bool = True,
    **limits: Any,
) -> tuple[TextCodec, TextCodec]:
    """The codecs of both sides, with a vocabulary each, or one for both."""
    sides: list[Iterable[list[str]]] = [[source for source, _ in pairs], [target for _, target in pairs]]
    if shared:
        sides = [[sentence for pair in pairs for sentence in pair]] * 2
    source, target = (
        TextCodec(Vocabulary.from_sentences(side, **limits), language, lowercase)
        for side, language in zip(sides, languages, strict=True)
    )
    return source, target


def _encode(pairs: Iterable[Words], codecs: tuple[TextCodec, TextCodec]) -> list[Example]:
    source, target = (codec.vocabulary for codec in codecs)
    return [(source.encode(words), target.encode(translation)) for words, translation in pairs]
