"""Tests of F08: four similarities, compared with loops over the keys."""

import numpy as np
import pytest
from figure_cells import read, same
from jianshu_oracle import softmax, story


def similarity_oracle(name, q, k, rng):
    """Compute the four similarities of one query by loops over the keys, with weights in the same order."""
    d = len(q)

    def drawn(*shape):
        return rng.standard_normal(shape) / np.sqrt(d)

    if name == "dot":
        return np.array([q @ key for key in k])
    if name == "general":
        w = drawn(d, d)
        return np.array([q @ w @ key for key in k])
    if name == "concat":
        w = drawn(2 * d)
        return np.array([w @ np.concatenate([q, key]) for key in k])
    w, u, v = drawn(d, d), drawn(d, d), drawn(d) * np.sqrt(d)
    return np.array([v @ np.tanh(w.T @ q + u.T @ key) for key in k])


@pytest.mark.parametrize(("sentence", "word"), [("i am a student", 3), ("the key is old", 0)])
def test_f08_four_similarities_on_the_same_query_and_keys(sentence, word):
    s = story(sentence=sentence, length=len(sentence.split()) + 1)
    found = read("F08", sentence=sentence, word=word)
    by_size = [g for g in found if g.values.shape[0] > 1]
    k, v = sorted(by_size, key=lambda g: g.left)
    same(k.values, s.k)
    same(v.values, s.v)
    q, *rest = [g for g in found if g.values.shape[0] == 1]
    same(q.values[0], s.q[word])
    rng = np.random.default_rng(3)
    for index, name in enumerate(("dot", "general", "concat", "perceptron")):
        scores, weights, z = rest[3 * index : 3 * index + 3]
        expected = similarity_oracle(name, s.q[word], s.k, rng)
        same(scores.values[0], expected)
        same(weights.values[0], softmax(expected))
        same(z.values[0], softmax(expected) @ s.v)


def test_f08_concat_gives_every_query_the_same_weights():
    rows = [[g for g in read("F08", word=word) if g.values.shape[0] == 1][8].values for word in (0, 4)]
    np.testing.assert_array_equal(rows[0], rows[1])
