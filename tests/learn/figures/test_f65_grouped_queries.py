"""Tests of F65: the lines are the heads that a change has an effect on."""

import numpy as np
from figure_cells import texts

from npformer.learn.figures import draw
from npformer.learn.figures.f65_grouped_queries import uses


def test_copies_of_a_head_are_used_by_neighbours():
    np.testing.assert_array_equal(uses(4, 2), [[1, 0], [1, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(uses(4, 4), np.eye(4))
    assert uses(3, 1).all()


def test_a_line_for_each_query_head_and_its_head_of_keys():
    drawing = draw("F65", n_heads=6, key_heads=(3, 2))
    assert "3 heads of keys and values, used by 2 query heads" in drawing.caption
    assert "2 heads of keys and values, used by 3 query heads" in drawing.caption
    assert texts(drawing.figure).count("5") == 2
