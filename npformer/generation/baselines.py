"""Baselines for the held-out sentences of the built-in corpus: what memory and single words can do.

A model that translates a held-out sentence may have learned the rules. Or it may know a training sentence
that is almost the same, or a single word that goes with the right answer. These baselines show how far the
last two ways lead.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npformer.data.corpus import Pair
from npformer.data.corpus.pairs import Family, HeldOut
from npformer.generation.evaluation import parts_of, right_word


@dataclass(frozen=True)
class BaselineAccuracy:
    """The accuracy of the baselines on one part of the test set, and its distance from training."""

    family: Family
    held_out: HeldOut | None
    sentences: int
    distances: tuple[int, ...]  # the number of words to change to reach the nearest training sentence
    nearest_exact: int  # the translation of the nearest training sentence is right
    nearest_right_word: int | None  # its il or elle, rive or banque is; None without an ambiguous word
    single_word: int | None  # the answer of the strongest single word is right

    def distance(self, share: float) -> float:
        """Return the distance below which this share of the sentences lies: 0.5 for the median."""
        return float(np.quantile(self.distances, share, method="lower"))


def evaluate_baselines(
    pairs: Sequence[Pair], training: Sequence[Pair], *, sample: int = 100
) -> list[BaselineAccuracy]:
    """Return the accuracy of the baselines for each part of the test set.

    Args:
        pairs: The held-out pairs.
        training: The training pairs. Those of the same family serve as memory.
        sample: The number of sentences of each part to measure. The first ones are taken.
    """
    reports = []
    families = {pair.family for pair in pairs}
    memory = {family: Memory([p for p in training if p.family == family]) for family in families}
    for (family, held_out), part in parts_of(pairs).items():
        some, known = part[:sample], memory[family]
        nearest = [known.nearest(pair.english) for pair in some]
        exact = sum(found.french == pair.french for pair, (found, _) in zip(some, nearest, strict=True))
        distances = tuple(distance for _, distance in nearest)
        words = single = None
        if part[0].reference is not None:
            words = sum(
                right_word(pair, found.french) for pair, (found, _) in zip(some, nearest, strict=True)
            )
            single = sum(known.single_word_answer(pair.english) == _right(pair) for pair in some)
        reports.append(BaselineAccuracy(family, held_out, len(some), distances, exact, words, single))
    return reports


def _right(pair: Pair) -> str:
    assert pair.reference is not None
    return pair.reference.right


class Memory:
    """Training sentences: the one nearest to a sentence, and the words that go with an answer."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = list(pairs)
        sentences = [pair.english.split() for pair in pairs]
        self._ids: dict[str, int] = {}
        for words in sentences:
            for word in words:
                self._ids.setdefault(word, len(self._ids))
        self._lengths = np.array([len(words) for words in sentences])  # (N,)
        self._words = np.full((max(self._lengths), len(pairs)), -1, np.int16)  # (L, N)
        for column, words in enumerate(sentences):
            self._words[: len(words), column] = [self._ids[word] for word in words]
        self._answers = _answers_of_words(pairs)

    def nearest(self, sentence: str) -> tuple[Pair, int]:
        """Return the first training pair with the smallest edit distance in words, and this distance."""
        distances = edit_distances(
            [self._ids.get(word, -2) for word in sentence.split()], self._words, self._lengths
        )
        best = int(distances.argmin())
        return self.pairs[best], int(distances[best])

    def single_word_answer(self, sentence: str) -> str:
        """Return the answer that goes with the most telling word of the sentence."""
        candidates = [self._answers[word] for word in sentence.split() if word in self._answers]
        return max(candidates)[1]


def edit_distances(sentence: Sequence[int], others: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the edit distance of a sentence to each of many others, in words, (N,).

    The edit distance is the smallest number of words to insert, delete or replace (Levenshtein 1966).

    Args:
        sentence: The token ids of the sentence.
        others: The token ids of the other sentences, padded, (L, N).
        lengths: The lengths of the other sentences, (N,).
    """
    longest, n = others.shape
    # row[j] has the distances of the words so far to the first j words of the others, (L + 1, N)
    row = np.repeat(np.arange(longest + 1, dtype=np.int16)[:, None], n, axis=1)
    for count, token in enumerate(sentence, start=1):
        replaced = row[:-1] + (others != token)
        new = np.full_like(row, count)
        for j in range(longest):
            np.minimum(np.minimum(row[j + 1], new[j]) + 1, replaced[j], out=new[j + 1])
        row = new
    return row[lengths, np.arange(n)]


def _answers_of_words(pairs: Sequence[Pair]) -> dict[str, tuple[float, str]]:
    """Return for each word its most frequent right answer, with the share of its sentences that have it."""
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        if pair.reference is not None:
            for word in set(pair.english.split()):
                counts.setdefault(word, Counter())[pair.reference.right] += 1
    answers = {}
    for word, counter in counts.items():
        answer, most = counter.most_common(1)[0]
        answers[word] = ((most + 1) / (counter.total() + 2), answer)  # a rare word must not count as certain
    return answers
