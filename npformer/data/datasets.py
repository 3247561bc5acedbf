"""Datasets: sentence pairs as ids, cut into training, validation and test, with their vocabularies.

Each comes with a description in plain values from which open_dataset makes it anew when a run goes on, and
with a fingerprint that tells whether it is still the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.data.corpus import builtin_corpus
from npformer.data.dataset import Dataset, Words, encode_words, split_words, word_codecs
from npformer.data.file_datasets import files_dataset
from npformer.data.tasks import copy_task, reverse_task
from npformer.data.tokens import LANGUAGES
from npformer.data.vocabulary import SPECIALS, TextCodec, Vocabulary
from npformer.errors import UserError

__all__ = [
    "DIRECTIONS",
    "TASKS",
    "Dataset",
    "builtin_dataset",
    "files_dataset",
    "open_dataset",
    "task_dataset",
]

DIRECTIONS = ("en-fr", "fr-en")
TASKS = {"copy": copy_task, "reverse": reverse_task}


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
        parts.append([split_words((text[names[0]], text[names[1]]), languages) for text in texts])
    codecs = word_codecs(parts[0], languages, shared=shared)
    description = {"kind": "builtin", "direction": direction, "seed": seed, "shared": shared}
    train, valid, test = (encode_words(part, codecs) for part in parts)
    return Dataset(train, valid, test, *codecs, description)


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
