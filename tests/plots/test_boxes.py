"""Tests of boxes and arrows."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from npformer.errors import UserError
from npformer.plots import text_problems
from npformer.plots.board import Board
from npformer.plots.boxes import Box, around, arrow, draw_box
from npformer.plots.layout import sheet
from npformer.plots.style import drawing


def test_arrows_end_where_they_should():
    with drawing():
        board = Board()
        below, above = board.box("below", 2, 1, 1.7), board.box("above", 2, 3, 1.7, colour="norm")
        plus = board.sign(2, 2)
        for points in ((below.top, plus.bottom), (plus.top, above.bottom), ((3, 1), (4, 1))):
            board.arrow(*points)
        board.arrow(*around((2, 0.5), plus.left, 1.0), dashed=True)
        figure = board.cut()
    lines = [p for p in figure.axes[0].patches if isinstance(p, FancyArrowPatch)]
    assert len(lines) == 4
    assert below.top == (2, 1.21)
    assert below.on_bottom(1.0) == pytest.approx((2.85, 0.79))
    assert lines[3].get_linestyle() != "-"
    assert plus.left == (1.87, 2)
    through = lines[3].get_path().vertices[:4]  # the arrow head follows and shortens the last segment
    assert np.allclose(through, [(2, 0.5), (1, 0.5), (1, 2), (1.87, 2)], atol=0.1)
    assert around((2, 0.5), plus.left, 1.0) == [(2, 0.5), (1.0, 0.5), (1.0, 2), (1.87, 2)]
    assert text_problems(figure) == []
    with pytest.raises(UserError, match="two points"):
        arrow(figure.axes[0], (0, 0))


def test_boxes_hold_their_labels():
    with drawing():
        ax = sheet(5, 4)
        draw_box(ax, Box("a", 1, 1), highlight=True)
        assert ax.patches[-1].get_linewidth() > 2
        with pytest.raises(UserError, match="make the box larger"):
            draw_box(ax, Box("a label that is much too long for it", 1, 1))
        board = Board()
        board.frame(0, 0, 3, 3, label="layer")
        board.box("encoder", 1.5, 1.5, 1)
        figure = board.cut()
    shapes = [p for p in figure.axes[0].patches if isinstance(p, FancyBboxPatch)]
    assert [shape.get_zorder() for shape in shapes] == [0.5, 3]  # the frame is behind the box
    assert [t.get_text() for t in figure.axes[0].texts] == ["layer", "encoder"]
    assert text_problems(figure) == []
