"""The baselines for held-out sentences: the nearest training sentence, and the most telling word."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from npformer.data.corpus import Pair, Reference
from npformer.generation.baselines import edit_distances, evaluate_baselines


def slow_distance(a, b):
    """Compute the edit distance by its definition: the cheapest of the three last operations."""
    if not a or not b:
        return len(a) + len(b)
    replaced = slow_distance(a[:-1], b[:-1]) + (a[-1] != b[-1])
    return min(replaced, slow_distance(a[:-1], b) + 1, slow_distance(a, b[:-1]) + 1)


sentences = st.lists(st.integers(0, 2), max_size=5)


@given(sentence=sentences, others=st.lists(sentences, min_size=1, max_size=4))
def test_edit_distances(sentence, others):
    padded = np.full((5, len(others)), -1, np.int16)
    for column, other in enumerate(others):
        padded[: len(other), column] = other
    lengths = np.array([len(other) for other in others])
    expected = [slow_distance(sentence, other) for other in others]
    assert edit_distances(sentence, padded, lengths).tolist() == expected


def pair(english, french, right=None, held_out=None):
    reference = None if right is None else Reference(0, (0,), right, "", french.split().index(right))
    return Pair(english, french, "simple" if right is None else "bank", reference, held_out=held_out)


TRAINING = [
    pair("the duck waited near the bank", "le canard a attendu près de la rive", "rive"),
    pair("the duck saw the bank", "le canard a vu la rive", "rive"),
    pair("the thief waited near the bank", "le voleur a attendu près de la banque", "banque"),
    pair("the thief saw the bank", "le voleur a vu la banque", "banque"),
]


def test_evaluate_baselines():
    test = [
        # one word more than the nearest sentence, so that its rive is not where the right one is
        pair("the duck saw the old bank", "le canard a vu la vieille rive", "rive", "words"),
        # the nearest sentence is about the thief, and so is the most telling word
        pair("the thief waited near the bank of it", "le voleur a attendu près de la rive", "rive", "words"),
        pair("the duck saw the bank", "le canard a vu la rive", "rive", "frame"),
    ]
    words, frame = evaluate_baselines(test, TRAINING)
    assert (words.family, words.held_out, words.sentences) == ("bank", "words", 2)
    assert words.distances == (1, 2)
    assert (words.nearest_exact, words.nearest_right_word, words.single_word) == (0, 0, 1)
    assert frame.distances == (0,)
    assert (frame.nearest_exact, frame.nearest_right_word, frame.single_word) == (1, 1, 1)
    assert evaluate_baselines(test, TRAINING, sample=1)[0].sentences == 1
