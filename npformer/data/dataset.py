"""Datasets of sentence pairs: token ids for training, validation and test, with the codecs of both languages.

A dataset is made from the built-in corpus, from a toy task, from text files or from the Multi30k corpus. Its
description holds the arguments as JSON values, and `open_dataset` makes the dataset again from them when a
run resumes. Its fingerprint shows whether the sentences are still the same.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from npformer.data.base_dataset import Dataset
from npformer.data.codecs import Codec, TextCodec
from npformer.data.corpus import builtin_corpus
from npformer.data.files import read_parallel
from npformer.data.filters import Counts, Pair, filter_pairs
from npformer.data.loader import Batch, DataLoader, Example, Ids, example_lengths
from npformer.data.monolingual import MOST_VALID, VALID_SHARE, sentence_dataset
from npformer.data.multi30k import FOLDER, corpus_files
from npformer.data.subwords import TEXTS, TextForm, joint_codecs
from npformer.data.text import text_dataset
from npformer.data.tokens import LANGUAGES, Language, language_of, tokenize
from npformer.data.vocabulary import END, PAD, SPECIALS, START, Vocabulary
from npformer.errors import UserError
from npformer.storage.json_files import require_entries, require_object, require_version
from npformer.validation import require_choice, short

DIRECTIONS = ("en-fr", "fr-en")  # the directions of the built-in corpus

DESCRIPTION_FORMAT = 1  # the version of a description, which is written without a number

LOST_CASE = (
    "the text has capitals and is converted to lower case, so the translations will be in lower case: "
    "--cased keeps the capitals"
)

Words = tuple[list[str], list[str]]  # the words of a sentence and of its translation
FilePath = str | PathLike[str]
Files = tuple[FilePath, FilePath]


@dataclass(frozen=True)
class PairDataset(Dataset):
    """Sentence pairs as token ids, and the codecs that convert text to ids and back.

    Raises:
        UserError: If there is nothing to train on.
    """

    contents: ClassVar[str] = "sentence pairs"

    train: list[Example]
    valid: list[Example]
    test: list[Example]
    source: Codec
    target: Codec
    description: dict[str, Any] = field(default_factory=dict)
    counts: Counts | None = None  # how many pairs were kept or left out; None if none can be
    lost_case: bool = False  # the training text has capitals, and was converted to lower case

    def __post_init__(self) -> None:
        if not self.train:
            raise UserError("the dataset has no training sentences: give more, or allow longer ones")

    @cached_property
    def train_lengths(self) -> Ids:
        """The lengths (N, 2) of the training pairs in a batch, for the DataLoader."""
        return example_lengths(self.train)

    @cached_property
    def valid_lengths(self) -> Ids:
        """The lengths (N, 2) of the validation pairs in a batch."""
        return example_lengths(self.valid)

    @property
    def max_length(self) -> int:
        """The length of the longest sentence, of training and validation."""
        return int(max(lengths.max(initial=0) for lengths in (self.train_lengths, self.valid_lengths)))

    @property
    def dropped(self) -> int:
        """The number of training pairs that were left out."""
        return 0 if self.counts is None else self.counts.dropped

    @property
    def codecs(self) -> dict[str, Codec]:
        """The codecs by their roles, "source" and "target"."""
        return {"source": self.source, "target": self.target}

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the vocabularies, as settings of a model's configuration."""
        return {f"{side}_vocab": len(codec.vocabulary) for side, codec in self.codecs.items()}

    @property
    def translations(self) -> list[Example]:
        """The validation pairs, whose translations are compared by BLEU."""
        return self.valid

    @property
    def remarks(self) -> list[str]:
        """Sentences for the user: how many pairs were left out, and whether capitals were lost."""
        counted = [] if self.counts is None else [self.counts.sentence()]
        return [*counted, LOST_CASE] if self.lost_case else counted

    def loader(self, length: int, **batching: Any) -> DataLoader:
        """Return the loader of the training batches. A batch is as long as its longest sentence."""
        return DataLoader(self.train, self.train_lengths, **batching)

    def validation_batches(self, length: int, **batching: Any) -> list[Batch]:
        """Return all validation pairs in batches, the same in every call."""
        return DataLoader(self.valid, self.valid_lengths, **batching).epoch()

    def check_model(self, config: Any) -> None:
        """Check that a model's vocabularies and its longest sentence fit the dataset.

        Raises:
            UserError: If they do not.
        """
        super().check_model(config)
        if (config.pad_id, config.start_id, config.end_id) != (PAD, START, END):
            raise UserError(
                f"pad_id, start_id and end_id are {config.pad_id}, {config.start_id} and {config.end_id}: "
                f"the vocabularies have them at {PAD}, {START} and {END}"
            )
        if self.max_length > config.max_length:
            raise UserError(
                f"the longest sentence has {self.max_length} tokens, and the model's max_length is "
                f"{config.max_length}: raise it, or leave out longer sentences with the dataset's max_length"
            )


def open_dataset(description: Mapping[str, Any]) -> Dataset:
    """Make the dataset that has this description.

    Raises:
        UserError: If the description is of an unknown kind or has unknown settings.
    """
    what, advice = "the description of the dataset", "to continue the run, give the dataset itself"
    settings = dict(require_object(description, what, advice))
    require_version(settings, what, DESCRIPTION_FORMAT)
    settings.pop("format", None)
    kind = settings.pop("kind", None)
    makers: dict[Any, Callable[..., Dataset]]
    makers = {
        "builtin": builtin_dataset,
        "files": files_dataset,
        "multi30k": multi30k_dataset,
        "sentences": sentence_dataset,
        "task": task_dataset,
        "text": text_dataset,
    }
    if not isinstance(kind, str) or kind not in makers:
        raise UserError(f"there is no kind of dataset {short(kind)}: {advice}")
    maker = makers[kind]
    types = {name: hint for name, hint in get_type_hints(maker).items() if name != "return"}
    required = {
        name: types[name]
        for name, parameter in inspect.signature(maker).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    require_entries(settings, required, f"{what} of kind {kind!r}", advice, optional=types)
    return maker(**settings)


# The built-in corpus


def builtin_dataset(direction: str = "en-fr", *, seed: int = 0, shared: bool = False) -> PairDataset:
    """Return the built-in English-French corpus.

    The sentences of its test set contain pairs of words that never occur together in training
    (corpus/split.py).

    Args:
        direction: "en-fr" or "fr-en".
        seed: The seed of the grammar that makes the sentences.
        shared: Use one vocabulary for both languages.

    Raises:
        UserError: If the direction is unknown.
    """
    if direction not in DIRECTIONS:
        raise UserError(f"direction is {direction!r}: choose one of {', '.join(DIRECTIONS)}")
    names = direction.split("-")
    languages = (LANGUAGES[names[0]], LANGUAGES[names[1]])
    parts: list[list[Words]] = []
    for pairs in builtin_corpus(seed=seed):
        texts = ({"en": pair.english, "fr": pair.french} for pair in pairs)
        parts.append([_split_words((text[names[0]], text[names[1]]), languages) for text in texts])
    codecs = _word_codecs(parts[0], languages, shared=shared)
    description = {"kind": "builtin", "direction": direction, "seed": seed, "shared": shared}
    train, valid, test = (_encode_words(part, codecs) for part in parts)
    return PairDataset(train, valid, test, *codecs, description)


# Toy tasks, learned in seconds. A model that has learned to reverse a sequence attends across the whole
# sequence: the plot of its cross-attention shows a diagonal from corner to corner.


def task_dataset(
    task: str = "copy", *, n: int = 2000, length: int = 8, vocab: int = 20, seed: int = 0
) -> PairDataset:
    """Return a dataset of sequences to "copy" or to "reverse", with n / 10 each for validation and test.

    The tokens are written as numerals, so that a trained model can translate "3 1 2" like any sentence.

    Args:
        task: "copy" or "reverse".
        n: The number of training examples, 1 or more.
        length: The length of the longest sequence.
        vocab: The size of the vocabulary, special tokens included.
        seed: The seed of the sequences.

    Raises:
        UserError: If the task is unknown or a setting is too small.
    """
    if task not in TASKS:
        raise UserError(f"task is {task!r}: choose one of {', '.join(TASKS)}")
    if seed < 0:
        raise UserError(f"seed is {seed}: it must be 0 or more")
    rng = np.random.default_rng(seed)
    settings: dict[str, Any] = {"length": length, "vocab": vocab, "rng": rng}
    n_test = max(1, n // 10)
    train, valid, test = (TASKS[task](size, **settings) for size in (n, n_test, n_test))
    numerals = map(str, range(vocab - len(SPECIALS)))
    codec = TextCodec(Vocabulary((*SPECIALS, *numerals)))
    description = {"kind": "task", "task": task, "n": n, "length": length, "vocab": vocab, "seed": seed}
    return PairDataset(train, valid, test, codec, codec, description)


def copy_task(n: int, *, length: int, vocab: int, rng: np.random.Generator) -> list[Example]:
    """Return n examples (source, target) of random ids with target = source.

    Args:
        n: The number of examples.
        length: Sequences have 1 to `length` ids, each length with the same probability.
        vocab: The size of the vocabulary, special tokens included: the ids are 4 to vocab - 1.
        rng: The generator of the ids.

    Raises:
        UserError: If a setting is too small.
    """
    return [(ids, list(ids)) for ids in _random_sequences(n, length, vocab, rng)]


def reverse_task(n: int, *, length: int, vocab: int, rng: np.random.Generator) -> list[Example]:
    """Return n examples (source, target) of random ids with the target in reverse order.

    Args:
        n: The number of examples.
        length: Sequences have 1 to `length` ids, each length with the same probability.
        vocab: The size of the vocabulary, special tokens included: the ids are 4 to vocab - 1.
        rng: The generator of the ids.

    Raises:
        UserError: If a setting is too small.
    """
    return [(ids, ids[::-1]) for ids in _random_sequences(n, length, vocab, rng)]


LARGEST_TASK = 10**8  # numbers in the sequences of a task, which lie in memory
TASKS = {"copy": copy_task, "reverse": reverse_task}


def _random_sequences(n: int, length: int, vocab: int, rng: np.random.Generator) -> list[list[int]]:
    first = len(SPECIALS)
    smallest = {"n": (n, 1), "length": (length, 1), "vocab": (vocab, first + 1)}
    for name, (value, least) in smallest.items():
        if value < least:
            raise UserError(f"{name} is {value}: it must be {least} or more")
        if value > LARGEST_TASK:
            raise UserError(f"{name} is {short(value)}: it must be at most {LARGEST_TASK:,}")
    if n * length > LARGEST_TASK:
        raise UserError(
            f"n is {n:,} and length is {length:,}: their product must be at most {LARGEST_TASK:,}"
        )
    sizes = rng.integers(1, length + 1, size=n)
    return [rng.integers(first, vocab, size=size).tolist() for size in sizes]


# Text files


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
    subwords: int | None = None,
    text: TextForm = "raw",
    filtered: bool | None = None,
) -> PairDataset:
    """Return the dataset of two files whose lines are translations of each other.

    The suffixes of the files, as in train.en, name their languages.

    Args:
        source: The file of sentences to train on.
        target: The file of their translations, line by line.
        valid: Two files to validate on. By default, the last training pairs: one in 20, at most 1000.
        test: Two files to test on.
        max_length: Leave out pairs in which a side has more tokens, the end symbol included.
        limit: The largest number of training pairs to read.
        vocab_size: The largest size of each vocabulary of words.
        min_count: Leave words out of the vocabulary that occur less often in the training pairs.
        shared: Use one vocabulary of words for both sides.
        lowercase: Convert the text to lower case.
        subwords: The size of one vocabulary of subwords for both sides, instead of vocabularies of words.
        text: "raw", or "tokenised" to convert the sentences to the form of tokenised corpora (with subwords).
        filtered: Leave out training pairs as `filter_pairs` does (by default, only with subwords).

    Raises:
        UserError: If a file cannot be read, no pair is left, or settings are out of range.
    """
    _check_settings(max_length, subwords, text, vocab_size is not None or min_count != 1 or shared)
    filtered = subwords is not None if filtered is None else filtered
    texts, counts = _read(source, target, valid, test, limit, filtered)
    languages = language_of(Path(source)), language_of(Path(target))
    if subwords is None:
        limits = {"min_count": min_count, "max_size": vocab_size}
        parts = _by_words(texts, languages, max_length, shared, lowercase, **limits)
    else:
        parts = _by_subwords(texts, languages, max_length, subwords, lowercase, text)
    n_kept = len(parts.train) + (len(parts.valid) if valid is None else 0)
    description = _paths(source, target, valid, test) | {
        "max_length": max_length,
        "limit": limit,
        "vocab_size": vocab_size,
        "min_count": min_count,
        "shared": shared,
        "lowercase": lowercase,
        "subwords": subwords,
        "text": text,
        "filtered": filtered,
    }
    lost_case = lowercase and any(side != side.lower() for pair in texts.train for side in pair)
    return PairDataset(*parts, description, counts._replace(long=len(texts.train) - n_kept), lost_case)


def multi30k_dataset(
    direction: str = "en-de", *, subwords: int, max_length: int, folder: FilePath = FOLDER
) -> PairDataset:
    """Return Multi30k as lowercased, tokenised subwords.

    Args:
        direction: "en-de", "de-en", "en-fr" or "fr-en".
        subwords: The size of the vocabulary of both languages together.
        max_length: The length of the longest sentence to train on, in subwords.
        folder: The folder that `npformer data multi30k` wrote.

    Raises:
        UserError: If a file of the corpus is missing, or sentencepiece is not installed.
    """
    files = corpus_files(folder, direction, tokenised=True)
    return files_dataset(
        *files.train,
        valid=files.valid,
        test=files.test,
        max_length=max_length,
        subwords=subwords,
        text="tokenised",
    )


def _check_settings(max_length: int | None, subwords: int | None, text: str, of_words: bool) -> None:
    require_choice("text", text, TEXTS)
    if max_length is not None and max_length < 2:
        raise UserError(f"max_length is {max_length}: it must be 2 or more, for a word and the end symbol")
    if subwords is None and text != "raw":
        raise UserError(f"text is {text!r}, which needs subwords: give their number, such as subwords=8000")
    if subwords is not None and of_words:
        raise UserError(
            "subwords make one vocabulary of that size for both sides: leave out vocab_size, "
            "min_count and shared, which are for whole words"
        )


class _Texts(NamedTuple):
    """The sentence pairs of the files. valid is None if the last pairs of train are for validation."""

    train: list[Pair]
    valid: list[Pair] | None
    test: list[Pair]
    files: str  # the training files, for messages


class _Parts(NamedTuple):
    """The first fields of a PairDataset."""

    train: list[Example]
    valid: list[Example]
    test: list[Example]
    source: Codec
    target: Codec


def _read(
    source: FilePath,
    target: FilePath,
    valid: Files | None,
    test: Files | None,
    limit: int | None,
    filtered: bool,
) -> tuple[_Texts, Counts]:
    """Read the files and return the texts, with the counts of the training pairs so far."""
    training = read_parallel(source, target, limit=limit)
    pairs, counts = training.pairs, Counts(len(training.pairs))
    if filtered:
        pairs, counts = filter_pairs(pairs)
    counts = counts._replace(pairs=counts.pairs + training.dropped, empty=training.dropped)
    validation = None if valid is None else read_parallel(*valid).pairs
    testing = [] if test is None else read_parallel(*test).pairs
    return _Texts(pairs, validation, testing, f"{source} and {target}"), counts


def _by_words(
    texts: _Texts,
    languages: tuple[Language, Language],
    max_length: int | None,
    shared: bool,
    lowercase: bool,
    **limits: Any,
) -> _Parts:
    """Encode whole words, with a vocabulary for each side or one for both."""

    def fitting(pairs: Iterable[Pair], longest: int | None) -> list[Words]:
        return _fitting((_split_words(pair, languages, lowercase) for pair in pairs), longest)

    training = fitting(texts.train, max_length)
    if texts.valid is None:
        training, validation = _cut(training)
    else:
        validation = fitting(texts.valid, max_length)
    _require_some(training, texts)
    codecs = _word_codecs(training, languages, shared, lowercase, **limits)
    parts = (training, validation, fitting(texts.test, None))
    train, valid, test = (_encode_words(part, codecs) for part in parts)
    return _Parts(train, valid, test, *codecs)


def _by_subwords(
    texts: _Texts,
    languages: tuple[Language, Language],
    max_length: int | None,
    size: int,
    lowercase: bool,
    text: TextForm,
) -> _Parts:
    """Encode subwords of one vocabulary for both sides, trained on the training pairs, sources first."""
    training, validation = _cut(texts.train) if texts.valid is None else (texts.train, texts.valid)
    _require_some(training, texts)
    source, target = joint_codecs(training, size, languages=languages, lowercase=lowercase, text=text)

    def encode(pairs: Iterable[Pair], longest: int | None) -> list[Example]:
        return _fitting(((source.encode(one), target.encode(other)) for one, other in pairs), longest)

    train, valid = encode(training, max_length), encode(validation, max_length)
    _require_some(train, texts)
    return _Parts(train, valid, encode(texts.test, None), source, target)


def _split_words(pair: Pair, languages: tuple[Language, Language], lowercase: bool = True) -> Words:
    """Split both sentences of a pair into words."""
    source, target = (
        tokenize(text, lowercase=lowercase, elision=language.elision)
        for text, language in zip(pair, languages, strict=True)
    )
    return source, target


def _word_codecs(
    pairs: Sequence[Words],
    languages: tuple[Language, Language],
    shared: bool = False,
    lowercase: bool = True,
    **limits: Any,
) -> tuple[TextCodec, TextCodec]:
    """Return the codecs of both sides, with a vocabulary each, or one for both if `shared`."""
    sides: list[Iterable[list[str]]] = [[source for source, _ in pairs], [target for _, target in pairs]]
    if shared:
        sides = [[sentence for pair in pairs for sentence in pair]] * 2
    source, target = (
        TextCodec(Vocabulary.from_sentences(side, **limits), language, lowercase)
        for side, language in zip(sides, languages, strict=True)
    )
    return source, target


def _encode_words(pairs: Iterable[Words], codecs: tuple[TextCodec, TextCodec]) -> list[Example]:
    """Return the ids of pairs that are split into words."""
    source, target = (codec.vocabulary for codec in codecs)
    return [(source.encode(words), target.encode(translation)) for words, translation in pairs]


def _cut(pairs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Split pairs into those for training and those at the end for validation."""
    n_valid = min(MOST_VALID, max(1, len(pairs) // VALID_SHARE))
    return pairs[:-n_valid], pairs[-n_valid:]


def _fitting(pairs: Iterable[tuple[list[Any], list[Any]]], max_length: int | None) -> list[Any]:
    """Return the pairs, as words or ids, whose sides are neither empty nor too long."""
    longest = float("inf") if max_length is None else max_length - 1  # the end symbol takes one
    return [pair for pair in pairs if all(0 < len(side) <= longest for side in pair)]


def _require_some(training: list[Any], texts: _Texts) -> None:
    if not training:
        raise UserError(
            f"no pair of {texts.files} is left to train on: give more lines, or a larger max_length"
        )


def _paths(source: FilePath, target: FilePath, valid: Files | None, test: Files | None) -> dict[str, Any]:
    """Return the files of a description as absolute paths: a run may be resumed from another folder."""

    def absolute(path: FilePath) -> str:
        return str(Path(path).absolute())

    return {
        "kind": "files",
        "source": absolute(source),
        "target": absolute(target),
        "valid": valid and [absolute(path) for path in valid],
        "test": test and [absolute(path) for path in test],
    }
