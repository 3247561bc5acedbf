"""Tests of boxes and arrows."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from npformer.errors import UserError
from npformer.plots import layer_pair, text_problems
from npformer.plots.boxes import Box, around, arrow, draw_box, elbow, frame, sign, stack, tower
from npformer.plots.layout import new_figure, root, sheet
from npformer.plots.style import drawing


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_an_encoder_layer_beside_a_decoder_layer():
    figure = layer_pair(title="Two layers")
    assert texts(figure.axes[0]).count("self-attention") == 2
    assert texts(figure.axes[0]).count("feed-forward") == 2
    assert "encoder-decoder\nattention" in texts(figure.axes[0])
    assert text_problems(figure) == []
    ax = new_figure(8, 5).add_axes((0, 0, 1, 1))
    assert layer_pair(ax=ax) is root(ax)
    with pytest.raises(UserError, match="make them larger"):
        layer_pair(ax=new_figure(3, 3).add_axes((0, 0, 1, 1)))


def test_arrows_end_where_they_should():
    with drawing():
        ax = sheet(5, 4)
        below, above = Box("below", 2, 1), Box("above", 2, 3, colour="norm")
        tower(ax, [below, above], into=(2, 0), out=(2, 4))
        plus = sign(ax, 2, 2)
        arrow(ax, *around((2, 0.5), plus.left, 1.0), dashed=True, label="residual", label_side="left")
        arrow(ax, *elbow((2, 0.6), below.on_bottom(0.9)))
        arrow(ax, (3, 1), (4, 1), label="z")
    lines = [p for p in ax.patches if isinstance(p, FancyArrowPatch)]
    assert len(lines) == 6
    assert below.top == (2, 1.21)
    assert lines[3].get_linestyle() != "-"
    assert plus.left == (1.87, 2)
    through = lines[3].get_path().vertices[:4]  # the arrow head follows and shortens the last segment
    assert np.allclose(through, [(2, 0.5), (1, 0.5), (1, 2), (1.87, 2)], atol=0.1)
    assert np.allclose(around((2, 0.5), plus.left, 1.0), [(2, 0.5), (1, 0.5), (1, 2), (1.87, 2)])
    assert elbow((0, 0), (1, 2)) == [(0, 0), (1, 0), (1, 2)]
    assert elbow((0, 0), (1, 2), level_first=False) == [(0, 0), (0, 2), (1, 2)]
    assert text_problems(root(ax)) == []
    with pytest.raises(UserError, match="two points"):
        arrow(ax, (0, 0))


def test_boxes_hold_their_labels():
    with drawing():
        ax = sheet(5, 4)
        draw_box(ax, Box("a", 1, 1), highlight=True)
        assert ax.patches[-1].get_linewidth() > 2
        stack(ax, Box("encoder", 2, 3, width=1), 6)
        frame(ax, 0.5, 0.5, 3, 3, label="layer", repeat="N ×")
        with pytest.raises(UserError, match="make the box larger"):
            draw_box(ax, Box("a label that is much too long for it", 1, 1))
    assert {"× 6", "N ×", "layer"} <= set(texts(ax))
    assert sum(isinstance(p, FancyBboxPatch) for p in ax.patches) == 3
    assert text_problems(root(ax)) == []
