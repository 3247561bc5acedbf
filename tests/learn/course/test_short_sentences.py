"""The corpus of chapter 22, and its byte-pair encoding."""

from collections import Counter
from itertools import pairwise

import pytest

from npformer.data.vocabulary import UNK
from npformer.learn.course.short_sentences import join_pair, learn_subwords, short_sentences


def subwords_of_all_words(counts, n_pairs):
    """Count all pairs anew in each step, which is slow and simple."""
    split, made = {word: list("▁" + word) for word in counts}, []
    for _ in range(n_pairs):
        pairs = Counter()
        for word, parts in split.items():
            for pair in pairwise(parts):
                pairs[pair] += counts[word]
        left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
        made.append(left + right)
        split = {word: join_pair(parts, left, right) for word, parts in split.items()}
    return made


COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3, "banana": 2, "aaaa": 1}


@pytest.mark.parametrize("n_pairs", [1, 5, 15])
def test_subwords_are_those_of_counting_anew(n_pairs):
    assert learn_subwords(COUNTS, n_pairs) == subwords_of_all_words(COUNTS, n_pairs)


def test_the_corpus_has_no_unknown_tokens_and_is_written_back():
    corpus = short_sentences()
    assert len(corpus.train) == 4000
    assert len(corpus.valid) > 100
    for source, target in (*corpus.train, *corpus.valid):
        assert UNK not in source
        assert UNK not in target
    assert corpus.codec.decode(corpus.train[0][0]) == "the goose is younger than the frog"
