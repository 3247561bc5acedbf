"""Tests of F05: a batch of token ids."""

import numpy as np
from figure_cells import draw, read, texts

from npformer.learn.figures.jianshu_example import dataset


def batches(**changes):
    """Return the grids of x and y, without the single cells that explain the special ids."""
    return [grid for grid in read("F05", **changes) if grid.values.size > 1]


def padded(rows, length=10):
    return np.array([row[:length] + [0] * (length - len(row)) for row in rows])


def test_f05_shows_the_batch_with_x_above_y():
    x, y = batches()
    assert x.bottom > y.top
    fitting = [(s, t) for s, t in dataset().train if len(s) <= 9 and len(t) <= 9][:10]
    np.testing.assert_array_equal(x.values, padded([[*s, 3] for s, _ in fitting]))
    np.testing.assert_array_equal(y.values, padded([[2, *t] for _, t in fitting]))
    for grid in (x, y):
        np.testing.assert_array_equal(grid.painted("padding"), grid.values == 0)
    np.testing.assert_array_equal(y.painted("position"), y.values == 2)
    np.testing.assert_array_equal(x.painted("k"), x.values == 3)


def test_f05_names_the_four_special_ids():
    assert {"<PAD>", "<UNK>", "<S>", "</S>"} <= set(texts(draw("F05").figure))
    assert sorted(grid.values.item() for grid in read("F05") if grid.values.size == 1) == [0, 1, 2, 3]


def test_f05_of_the_users_sentences_has_unknown_words():
    x, y = batches(pairs=[("I am a zebra", "Je suis zèbre"), ("the key is old", "la clé")])
    english, french = dataset().source.vocabulary, dataset().target.vocabulary
    assert x.values[0].tolist() == [*map(english.id, ("i", "am", "a")), 1, 3] + [0] * 5
    assert y.values[1].tolist() == [2, *map(french.id, ("la", "clé"))] + [0] * 7
    np.testing.assert_array_equal(x.painted("weight"), x.values == 1)
