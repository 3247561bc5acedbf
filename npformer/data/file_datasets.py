"""Datasets from text files: sentences and their translations, line by line."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from npformer.data.batches import Example
from npformer.data.codecs import Codec
from npformer.data.dataset import Dataset, Words, encode_words, split_words, word_codecs
from npformer.data.files import read_parallel
from npformer.data.filters import Counts, Pair, filter_pairs
from npformer.data.subwords import TEXTS, TextForm, joint_codecs
from npformer.data.tokens import Language, language_of
from npformer.errors import UserError
from npformer.settings import require_choice

# without a validation file: one pair in 20 off the end of the training file, at most 1000
VALID_SHARE, MOST_VALID = 20, 1000

FilePath = str | PathLike[str]
Files = tuple[FilePath, FilePath]


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
) -> Dataset:
    """Two files whose lines translate each other; their suffixes, as in train.en, tell the languages.

    max_length: leave out pairs with a side of more tokens, its end symbol counted. limit: read that many
    training pairs and no more. Without valid, the last pairs are for validation: one in 20, at most 1000.
    filtered: leave out training pairs as filter_pairs does (default: where there are subwords).
    The words of the training pairs make the vocabularies: one a side, or one for both if shared.
    subwords: instead, one vocabulary of that many pieces of words for both sides; text "tokenised" brings
    their sentences to the form of tokenised corpora first.
    Errors: UserError for files that cannot be read or leave no pairs, and for settings out of range.
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
    kept = len(parts.train) + (len(parts.valid) if valid is None else 0)
    description = _where(source, target, valid, test) | {
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
    return Dataset(*parts, description, counts._replace(long=len(texts.train) - kept))


def _check_settings(max_length: int | None, subwords: int | None, text: str, of_words: bool) -> None:
    require_choice("text", text, TEXTS)
    if max_length is not None and max_length < 2:
        raise UserError(f"max_length is {max_length}: it must be 2 or more, for a word and the end symbol")
    if subwords is None and text != "raw":
        raise UserError(f"text is {text!r}, which is a matter of subwords: say how many, as subwords=8000")
    if subwords is not None and of_words:
        raise UserError(
            "subwords make one vocabulary for both sides, of their own number: leave out vocab_size, "
            "min_count and shared, which are for whole words"
        )


class _Texts(NamedTuple):
    """The sentence pairs of the files; valid is None where some of train are for validation."""

    train: list[Pair]
    valid: list[Pair] | None
    test: list[Pair]
    files: str  # what to call the training files in a message


class _Parts(NamedTuple):
    """What a dataset begins with."""

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
    """The texts, and the counts of the training pairs so far."""
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
    """Every word has its id, in a vocabulary of its side or of both."""

    def fitting(pairs: Iterable[Pair], longest: int | None) -> list[Words]:
        return _fitting((split_words(pair, languages, lowercase) for pair in pairs), longest)

    training = fitting(texts.train, max_length)
    if texts.valid is None:
        training, validation = _cut(training)
    else:
        validation = fitting(texts.valid, max_length)
    _require_some(training, texts)
    codecs = word_codecs(training, languages, shared, lowercase, **limits)
    parts = (training, validation, fitting(texts.test, None))
    train, valid, test = (encode_words(part, codecs) for part in parts)
    return _Parts(train, valid, test, *codecs)


def _by_subwords(
    texts: _Texts,
    languages: tuple[Language, Language],
    max_length: int | None,
    size: int,
    lowercase: bool,
    text: TextForm,
) -> _Parts:
    """Both sides are written in the same pieces; those of the training pairs, the sources first."""
    training, validation = _cut(texts.train) if texts.valid is None else (texts.train, texts.valid)
    _require_some(training, texts)
    source, target = joint_codecs(training, size, languages=languages, lowercase=lowercase, text=text)

    def encode(pairs: Iterable[Pair], longest: int | None) -> list[Example]:
        return _fitting(((source.encode(one), target.encode(other)) for one, other in pairs), longest)

    train, valid = encode(training, max_length), encode(validation, max_length)
    _require_some(train, texts)
    return _Parts(train, valid, encode(texts.test, None), source, target)


def _cut(pairs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The training pairs, and those at the end that are kept for validation."""
    n_valid = min(MOST_VALID, max(1, len(pairs) // VALID_SHARE))
    return pairs[:-n_valid], pairs[-n_valid:]


def _fitting(pairs: Iterable[tuple[list, list]], max_length: int | None) -> list[Any]:
    """The pairs, as words or ids, that have some on both sides and not too many."""
    longest = float("inf") if max_length is None else max_length - 1  # the end symbol takes one
    return [pair for pair in pairs if all(0 < len(side) <= longest for side in pair)]


def _require_some(training: list[Any], texts: _Texts) -> None:
    if not training:
        raise UserError(
            f"no pair of {texts.files} is left to train on: give more lines, or a larger max_length"
        )


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
