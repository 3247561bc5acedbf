"""Counts of sentences: BLEU, its interval and BLEU by length are those of sacrebleu."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from npformer.generation.bleu_statistics import (
    LEAST_RESAMPLED,
    bleu_by_length,
    bleu_half_width,
    corpus_bleu,
    sentence_counts,
)

# two words, so that sentences share n-grams of some orders and lack others
sentences = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)
pairs = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6)


def translated_set():
    """Return 40 translations and their references, which share most words."""
    rng = np.random.default_rng(0)
    references = [[f"w{word}" for word in rng.integers(9, size=rng.integers(4, 22))] for _ in range(40)]
    changed = [["x" if rng.random() < 0.2 else word for word in line] for line in references]
    return [" ".join(line[:-1]) for line in changed], [" ".join(line) for line in references]


def test_the_counts_of_a_sentence():
    """Of "a b c a", the reference "a b c d e" has a, b and c, a b and b c, and a b c."""
    (found,) = sentence_counts(["a b c a"], ["a b c d e"], "none")
    assert found.tolist() == [4, 5, 3, 2, 1, 0, 4, 3, 2, 1]


@given(pairs)
def test_bleu_from_counts_is_that_of_sacrebleu(lines):
    """Sentences without a common n-gram of some order are smoothed, and empty ones have no n-gram."""
    translations, references = map(list, zip(*lines, strict=True))
    expected = BLEU(tokenize="none", force=True).corpus_score(translations, [references]).score
    counts = sentence_counts(translations, references, "none")
    assert corpus_bleu(counts.sum(0)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_interval_is_that_of_sacrebleu():
    translations, references = translated_set()
    counts = sentence_counts(translations, references, "none")
    expected = BLEU(tokenize="none", force=True).corpus_score(translations, [references], n_bootstrap=1000)
    assert expected._ci > 1
    assert bleu_half_width(counts) == pytest.approx(expected._ci, rel=1e-5)  # sacrebleu adds up in float32


def test_the_interval_depends_on_the_seed_and_on_the_sentences():
    counts = sentence_counts(*translated_set(), "none")
    assert bleu_half_width(counts, seed=1) == bleu_half_width(counts, seed=1)
    assert bleu_half_width(counts, seed=1) != bleu_half_width(counts, seed=2)
    assert bleu_half_width(np.repeat(counts[:1], 20, 0)) == 0  # equal sentences leave no doubt
    assert bleu_half_width(counts[:1], samples=3) == 0
    four_times = np.repeat(counts, 4, 0)
    # the percentiles of 1,000 samples vary by some percent
    assert bleu_half_width(four_times) == pytest.approx(bleu_half_width(counts) / 2, rel=0.2)


def test_bleu_by_length():
    translations, references = translated_set()
    sources = ["w " * length for length in range(1, 41)]  # 9, 5, 5 and 21 sentences
    counts = sentence_counts(translations, references, "none")
    found = bleu_by_length(counts, sources)
    assert [(each.lengths, each.sentences) for each in found] == [
        ("1-9", 9),
        ("10-14", 5),
        ("15-19", 5),
        ("20+", 21),
    ]
    metric = BLEU(tokenize="none", force=True)
    for each, part in zip(found, (slice(9), slice(9, 14), slice(14, 19), slice(19, 40)), strict=True):
        assert each.bleu == pytest.approx(metric.corpus_score(translations[part], [references[part]]).score)
        resampled = each.sentences >= LEAST_RESAMPLED
        assert each.half_width == (bleu_half_width(counts[part]) if resampled else None)
    assert found[3].half_width > 0
    other = bleu_by_length(counts, sources, lengths=(1, 30), seed=3)
    assert [(each.lengths, each.sentences) for each in other] == [("1-29", 29), ("30+", 11)]
    assert other[1].half_width == bleu_half_width(counts[29:], seed=3)
