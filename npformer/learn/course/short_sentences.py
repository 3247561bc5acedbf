"""The corpus of chapter 22: short sentence pairs, and subwords that byte-pair encoding learns from them."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from npformer.data.corpus import Pair, builtin_corpus
from npformer.data.loader import Example
from npformer.data.subwords import WORD_BEGIN, SubwordCodec
from npformer.data.vocabulary import SPECIALS, Vocabulary

LONGEST = 7  # words of an English sentence
TRAINING_PAIRS = 4000
JOINED_PAIRS = 400  # of byte-pair encoding


class ShortSentences(NamedTuple):
    """The corpus of chapter 22 as ids: pairs (source, target) for training and validation."""

    train: list[Example]
    valid: list[Example]
    codec: SubwordCodec  # one vocabulary for both languages


def short_sentences() -> ShortSentences:
    """Return the short simple sentences of the built-in corpus, with subwords learned from the first part."""
    corpus = builtin_corpus()
    train, valid = _short(corpus.train)[:TRAINING_PAIRS], _short(corpus.valid)
    whole = SubwordCodec(Vocabulary(SPECIALS))  # without subwords: it only normalizes text
    lines = [whole.normalise(text) for pair in train for text in (pair.english, pair.french)]
    counts = Counter(word for line in lines for word in line.split())
    characters = sorted({character for word in counts for character in WORD_BEGIN + word})
    subwords = dict.fromkeys([*learn_subwords(counts, JOINED_PAIRS), *characters])
    codec = SubwordCodec(Vocabulary((*SPECIALS, *subwords)))
    return ShortSentences(_encoded(train, codec), _encoded(valid, codec), codec)


def learn_subwords(counts: Mapping[str, int], n_pairs: int) -> list[str]:
    """Return the subwords that byte-pair encoding makes, in order.

    In each step the most frequent pair of adjacent parts becomes a new subword. Of pairs with equal counts,
    the last one in alphabetical order is taken.

    Args:
        counts: The number of occurrences of each word.
        n_pairs: The number of pairs to join. There are fewer if all words become single subwords.

    Source: Sennrich et al. 2016, section 3.2.
    """
    split = {word: list(WORD_BEGIN + word) for word in counts}
    pair_counts = Counter[tuple[str, str]]()
    words_with = defaultdict[tuple[str, str], set[str]](set)

    def count_pairs(word: str, times: int) -> None:
        for pair in pairwise(split[word]):
            pair_counts[pair] += times
            words_with[pair].add(word)

    for word in split:
        count_pairs(word, counts[word])
    made = list[str]()
    while len(made) < n_pairs:
        best = max(pair_counts, key=lambda pair: (pair_counts[pair], pair), default=None)
        if best is None or pair_counts[best] == 0:
            break
        made.append("".join(best))
        for word in words_with.pop(best):  # only these words change
            count_pairs(word, -counts[word])
            split[word] = join_pair(split[word], *best)
            count_pairs(word, counts[word])
    return made


def join_pair(parts: Sequence[str], left: str, right: str) -> list[str]:
    """Join each `left` to the `right` that follows it, from left to right.

    Args:
        parts: The parts of a word, in order.
        left: A part.
        right: The part that must follow it.

    Returns:
        The parts of the word, fewer if any were joined.
    """
    done = list[str]()
    for part in parts:
        if done and (done[-1], part) == (left, right):
            done[-1] = left + right
        else:
            done.append(part)
    return done


def _short(pairs: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in pairs if pair.family == "simple" and len(pair.english.split()) <= LONGEST]


def _encoded(pairs: Sequence[Pair], codec: SubwordCodec) -> list[Example]:
    return [(codec.encode(pair.english), codec.encode(pair.french)) for pair in pairs]
