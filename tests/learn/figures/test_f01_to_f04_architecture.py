"""Tests of F01: highlighted boxes stand out. The boxes and arrows of F01 to F04 are in schematics.txt."""

import pytest
from figure_boxes import shapes
from figure_cells import draw
from matplotlib.colors import to_rgba

from npformer.learn.figures.f01_to_f04_architecture import PARTS
from npformer.plots.palette import COLOURS


def columns_of(figure):
    """Return the x of the encoder and of the decoder, which are the centres of the widest boxes."""
    wide = sorted({round(s.x, 6) for s in shapes(figure) if s.label.startswith("feed-forward")})
    assert len(wide) == 2
    return wide


def kinds(labels):
    return ["attention" if "attention" in label else label.split("\n")[0] for label in labels]


def marked(figure):
    """Return the labels with an orange border, the faded labels, and the others."""
    orange = to_rgba(COLOURS["highlight"])
    bordered = [s.label for s in shapes(figure) if s.edge_width > 2]
    faded = [s.label for s in shapes(figure) if s.alpha is not None and s.alpha < 1]
    frames = [p for p in figure.axes[0].patches if p.get_edgecolor() == orange and p.get_facecolor()[3] == 0]
    return bordered, faded, frames


BORDERED = {  # the others have a frame
    "add & norm": ["add & norm"] * 5,
    "encoder feed-forward norm": ["add & norm"],
    "feed-forward": ["feed-forward"] * 2,
    "attention": ["attention"] * 3,
    "cross-attention": ["attention"],
    "decoder self-attention": ["attention"],
    "embedding": ["input embedding", "output embedding"],
    "output": ["linear", "softmax"],
}


@pytest.mark.parametrize("part", PARTS)
def test_highlighted_boxes_stand_out_and_others_fade(part):
    drawing = draw("F01", highlight=part)
    found, faded, frames = marked(drawing.figure)
    assert found or frames
    assert faded
    assert f"Highlighted: {part}." in drawing.caption
    if part in BORDERED:
        assert sorted(kinds(found)) == sorted(BORDERED[part])
        assert len(found) + len(faded) == sum(not s.round for s in shapes(drawing.figure))
        assert frames == []


def test_highlighting_one_add_and_norm_marks_only_that_one():
    figure = draw("F01", highlight="decoder cross-attention norm").figure
    (one,) = [s for s in shapes(figure) if s.edge_width > 2]
    _, right = columns_of(figure)
    tower = [s for s in shapes(figure) if abs(s.x - right) < 1e-6]
    assert tower.index(one) == 5  # embedding, +, attention, add & norm, attention, then the highlighted one


def test_highlighting_a_stack_or_the_positions_draws_a_frame():
    figure = draw("F01", highlight="decoder").figure
    bordered, faded, (frame,) = marked(figure)
    left, right = columns_of(figure)
    assert bordered == []
    assert frame.get_x() < right < frame.get_x() + frame.get_width()
    assert not frame.get_x() < left < frame.get_x() + frame.get_width()
    assert kinds(faded).count("add & norm") == 2  # that of the encoder
    frames = marked(draw("F01", highlight="positions").figure)[2]
    assert [round(frame.get_height(), 6) for frame in frames] == [0.52, 0.52]  # around a circle of 0.4
    assert len(marked(draw("F01").figure)[1]) == 0
