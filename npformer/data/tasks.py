"""Made-up languages to learn in seconds: copying a sequence, and reversing it.

A model that learns to reverse has learnt to look across the whole sentence: the plot of its cross-attention
shows a diagonal from corner to corner.
"""

import numpy as np

from npformer.data.batches import Example
from npformer.data.vocabulary import SPECIALS
from npformer.errors import UserError


def copy_task(n: int, *, length: int, vocab: int, rng: np.random.Generator) -> list[Example]:
    """n examples (source, target) of random ids whose target is the source itself.

    length: sequences have 1 to `length` ids, each length as likely. vocab: the size of the vocabulary, the
    special words included: the ids are 4 to vocab - 1. Errors: UserError for a setting too small.
    """
    return [(ids, list(ids)) for ids in _random_sequences(n, length, vocab, rng)]


def reverse_task(n: int, *, length: int, vocab: int, rng: np.random.Generator) -> list[Example]:
    """n examples (source, target) of random ids whose target is the source backwards; see copy_task."""
    return [(ids, ids[::-1]) for ids in _random_sequences(n, length, vocab, rng)]


def _random_sequences(n: int, length: int, vocab: int, rng: np.random.Generator) -> list[list[int]]:
    first = len(SPECIALS)
    smallest = {"n": (n, 1), "length": (length, 1), "vocab": (vocab, first + 1)}
    for name, (value, least) in smallest.items():
        if value < least:
            raise UserError(f"{name} is {value}: it must be {least} or more")
    sizes = rng.integers(1, length + 1, size=n)
    return [rng.integers(first, vocab, size=size).tolist() for size in sizes]
