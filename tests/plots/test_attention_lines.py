"""Tests of rows of dots with lines between them, and of pictures side by side."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

from npformer.errors import UserError
from npformer.plots import text_problems
from npformer.plots.attention_lines import Flow, FlowRow, attention_flow

ROWS = [
    FlowRow("below", 3, 0, 0, words=["a", "bb", "ccc"]),
    FlowRow("above", 2, 4, 1.5, "z", words=["d", "e"], above=True, lit=1, bold=0, name_side="right"),
]
WEIGHTS = np.array([[0.7, 0.3, 0.0], [0.005, 0.5, 0.495]])


def lines(figure):
    return next(c for c in figure.axes[0].collections if isinstance(c, LineCollection))


def test_lines_go_from_key_to_query_as_wide_as_their_weight():
    figure = attention_flow(ROWS, [Flow(0, 1, WEIGHTS)], legend=[("highlight", "some lines")])
    dots = [c.get_offsets() for c in figure.axes[0].collections if isinstance(c, PathCollection)]
    drawn = lines(figure)
    widths = {
        tuple(map(tuple, np.round(segment, 6))): width
        for segment, width in zip(drawn.get_segments(), drawn.get_linewidths(), strict=True)
    }
    expected = {
        tuple(map(tuple, np.round([dots[0][s], dots[1][t]], 6))): 5 * WEIGHTS[t, s]
        for t, s in ((0, 0), (0, 1), (1, 1), (1, 2))
    }
    assert widths == pytest.approx(expected)
    assert text_problems(figure) == []


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (WEIGHTS.T, r"must be \(2, 3\)"),
        (-WEIGHTS, "finite and not negative"),
        (np.full((2, 3), np.nan), "finite and not negative"),
    ],
)
def test_invalid_flows_are_refused(weights, words):
    with pytest.raises(UserError, match=words):
        attention_flow(ROWS, [Flow(0, 1, weights)])
