"""Tests of F05: a batch of token ids."""

import numpy as np
import pytest
from jianshu_grids import grids, texts
from jianshu_oracle import DATA

from npformer.errors import UserError
from npformer.learn.figures import draw

OTHER = "the key is old"  # another sentence


def read(id, **changes):
    """Return the grids of a figure."""
    return grids(draw(id, **changes).figure)


def padded(rows, length=10):
    return np.array([row[:length] + [0] * (length - len(row)) for row in rows])


def test_f05_shows_the_batch_with_x_above_y():
    x, y = (grid for grid in read("F05") if grid.values.size > 1)
    assert x.bottom > y.top
    fitting = [(s, t) for s, t in DATA.train if len(s) <= 9 and len(t) <= 9][:10]
    sources, targets = [[*s, 3] for s, _ in fitting], [[2, *t] for _, t in fitting]
    np.testing.assert_array_equal(x.values, padded(sources))
    np.testing.assert_array_equal(y.values, padded(targets))
    for grid in (x, y):
        np.testing.assert_array_equal(grid.painted("padding"), grid.values == 0)
    np.testing.assert_array_equal(y.painted("position"), y.values == 2)
    np.testing.assert_array_equal(x.painted("k"), x.values == 3)


def test_f05_names_the_four_special_ids():
    drawing = draw("F05")
    assert {"<PAD>", "<UNK>", "<S>", "</S>"} <= set(texts(drawing.figure))
    specials = [grid.values.item() for grid in grids(drawing.figure) if grid.values.size == 1]
    assert sorted(specials) == [0, 1, 2, 3]


def test_f05_of_the_users_sentences_has_unknown_words():
    x, y = (
        g
        for g in read("F05", pairs=[("I am a zebra", "Je suis zèbre"), (OTHER, "la clé")])
        if g.values.size > 1
    )
    encode = DATA.source.vocabulary.id
    assert x.values[0].tolist() == [encode("i"), encode("am"), encode("a"), 1, 3] + [0] * 5
    assert y.values[1].tolist() == [2, *(DATA.target.vocabulary.id(w) for w in ("la", "clé"))] + [0] * 7
    np.testing.assert_array_equal(x.painted("weight"), x.values == 1)


def test_f05_refuses_batches_that_do_not_exist():
    with pytest.raises(
        UserError, match=r"first is 5 and sentences 99999999: the corpus has .* of up to 10 tokens"
    ):
        draw("F05", first=5, sentences=99999999)
    with pytest.raises(UserError, match="length is 0"):
        draw("F05", length=0)
