"""Tests of F53: the residual block follows the configuration."""

import pytest
from figure_boxes import column, loose_ends, shapes, touching
from figure_cells import draw

from npformer.plots import text_problems


@pytest.mark.parametrize(
    ("changes", "order"),
    [
        ({}, ["feed-forward\n512 → 2048 → 512", "+", "norm"]),
        ({"norm": "pre"}, ["norm", "feed-forward\n512 → 2048 → 512", "+"]),
        ({"d_model": 96, "d_ff": 7}, ["feed-forward\n96 → 7 → 96", "+", "norm"]),
    ],
)
def test_the_norm_of_the_residual_block_is_in_its_place(changes, order):
    figure = draw("F53", **changes).figure
    left, right = sorted({s.x for s in shapes(figure)})
    assert column(figure, left) == ["weights", "relu", "weights", "+", "relu"]
    assert column(figure, right) == order
    assert text_problems(figure) == []
    sums = [s for s in shapes(figure) if s.label == "+"]
    for plus in sums:
        straight, residual = sorted(touching(figure, plus, end=True), key=lambda a: len(a.points))
        assert straight.end[1] == plus.bottom
        assert len(residual.points) == 4
        lowest = next(s for s in shapes(figure) if s.x == plus.x)
        assert residual.start[1] < lowest.bottom
    assert len(loose_ends(figure)) == 2
