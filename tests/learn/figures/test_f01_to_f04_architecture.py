"""Tests of F01 to F04, the schematics of the architecture: boxes and arrows follow the configuration."""

import numpy as np
import pytest
from figure_boxes import arrows, column, loose_ends, shapes, touching
from figure_cells import draw, texts
from matplotlib.colors import to_rgba

from npformer.learn.figures.f01_to_f04_architecture import PARTS
from npformer.models.transformer import TransformerConfig
from npformer.plots import text_problems
from npformer.plots.palette import COLOURS

# F01


def columns_of(figure):
    """Return the x of the encoder and of the decoder, which are the centres of the widest boxes."""
    wide = sorted({round(s.x, 6) for s in shapes(figure) if s.label.startswith("feed-forward")})
    assert len(wide) == 2
    return wide


POST = {
    "encoder": ["attention", "add & norm", "feed-forward", "add & norm"],
    "decoder": ["attention", "add & norm", "attention", "add & norm", "feed-forward", "add & norm"],
}
PRE = {
    "encoder": ["norm", "attention", "+", "norm", "feed-forward", "+", "norm"],
    "decoder": ["norm", "attention", "+", "norm", "attention", "+", "norm", "feed-forward", "+", "norm"],
}


def kinds(labels):
    return ["attention" if "attention" in label else label.split("\n")[0] for label in labels]


LAST = {side: [*boxes, "norm"] for side, boxes in POST.items()}


@pytest.mark.parametrize(
    ("changes", "expected"), [({}, POST), ({"norm": "pre"}, PRE), ({"final_norm": True}, LAST)]
)
def test_a_stack_has_its_boxes_in_order(changes, expected):
    figure = draw("F01", **changes).figure
    left, right = columns_of(figure)
    assert kinds(column(figure, left)) == ["input embedding", "+", *expected["encoder"]]
    outer = ["output embedding", "+"], ["linear", "softmax"]
    assert kinds(column(figure, right)) == [*outer[0], *expected["decoder"], *outer[1]]


@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}, {"positions": "learned"}, {"positions": "none"}])
def test_arrows_end_at_boxes(changes):
    """Check that only the output leaves the picture, and that every box has an incoming arrow."""
    figure = draw("F01", **changes).figure
    (out,) = loose_ends(figure)
    softmax = next(s for s in shapes(figure) if s.label == "softmax")
    assert softmax.on_edge(out.start)
    for shape in shapes(figure):
        if shape.label not in ("", "learned\npositions"):  # the position encodings have no input
            assert touching(figure, shape, end=True), shape.label


def test_the_encoder_gives_keys_and_values_to_cross_attention():
    for changes in ({}, {"norm": "pre"}):
        figure = draw("F01", **changes).figure
        left, right = columns_of(figure)
        top = max((s for s in shapes(figure) if abs(s.x - left) < 1e-6), key=lambda s: s.y)
        (cross,) = [s for s in shapes(figure) if abs(s.x - right) < 1e-6 and s.label.startswith("multi-head")]
        into = touching(figure, cross, end=True)
        assert len(into) == 3
        assert sum(top.on_edge(a.start) for a in into) == 1
        assert len({round(a.end[0], 6) for a in into}) == 3
        assert all(abs(a.end[1] - cross.bottom) < 1e-6 for a in into)


@pytest.mark.parametrize(
    ("changes", "below", "sums"),
    [({}, ["attention", "feed-forward"], "add & norm"), ({"norm": "pre"}, ["norm", "norm"], "+")],
)
def test_residual_connections_bypass_each_sublayer(changes, below, sums):
    figure = draw("F01", **changes).figure
    left, right = columns_of(figure)
    for x in (left, right):
        tower = [s for s in shapes(figure) if abs(s.x - x) < 1e-6]
        passing = [a for a in arrows(figure) if len(a.points) == 4 and abs(a.points[0][0] - x) < 1e-6]
        round_ = [a for a in passing if abs(a.points[1][0] - x) > 1]
        joins = []
        for a in round_:
            (join,) = [s for s in tower if s.on_edge(a.end)]
            above = next(s for s in tower if s.bottom > a.start[1])  # the first box that it passes
            joins.append((kinds([above.label])[0], join.label))
            assert max(s.right for s in tower) < a.points[1][0] or min(s.left for s in tower) > a.points[1][0]
        expected = below if x == left else [below[0], below[0], below[1]]
        assert sorted(joins) == sorted((name, sums) for name in expected)


def test_numbers_come_from_the_configuration():
    changes = {"n_layers": 3, "d_model": 96, "n_heads": 4, "d_ff": 200, "tied": "output"}
    figure = draw("F01", source_vocab=500, target_vocab=700, **changes).figure
    labels = texts(figure)
    assert labels.count("3 ×") == 2
    assert labels.count("multi-head attention\n4 heads of 24") == 2
    assert "masked multi-head attention\n4 heads of 24" in labels
    assert labels.count("feed-forward\n96 → 200 → 96") == 2
    sizes = {"input embedding\n500 tokens × 96", "output embedding\n700 tokens × 96", "linear\n96 → 700"}
    assert sizes <= set(labels)
    config = TransformerConfig.architecture("paper-base")
    base = texts(draw("F01").figure)
    assert base.count(f"{config.n_layers} ×") == 2
    assert f"linear\n{config.d_model} → {config.target_vocab}" in base
    assert {"inputs", "outputs\n(shifted right)", "output probabilities"} <= set(base)


@pytest.mark.parametrize(
    ("positions", "circles"), [("interleaved", 2), ("halves", 2), ("learned", 0), ("none", 0)]
)
def test_positions(positions, circles):
    figure = draw("F01", positions=positions).figure
    waves = figure.axes[0].lines
    assert len(waves) == circles
    for wave in waves:  # one period of a sine
        x, y = wave.get_xdata(), wave.get_ydata()
        sine = np.ptp(y) / 2 * np.sin(np.linspace(-np.pi, np.pi, len(x)))
        np.testing.assert_allclose(y - y.mean(), sine, atol=1e-3)
    assert texts(figure).count("learned\npositions") == 2 * (positions == "learned")
    assert texts(figure).count("+") == (0 if positions == "none" else 2)


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


# F02


def test_the_black_box_and_its_contents():
    figure = draw("F02", sentence="le chat dort", translation="the cat sleeps", n_layers=3).figure
    assert [s.label for s in shapes(figure)] == ["3 encoders", "3 decoders", "the Transformer"]
    assert texts(figure).count("le chat dort") == texts(figure).count("the cat sleeps") == 2
    encoders, decoders, box = shapes(figure)
    (between,) = touching(figure, encoders, end=False)
    assert decoders.on_edge(between.end)
    assert len(touching(figure, box, end=True)) == 1
    assert "1 encoder" in texts(draw("F02", n_layers=1).figure)


# F03


@pytest.mark.parametrize("n", [1, 2, 12])
def test_the_top_encoder_is_connected_to_every_decoder(n):
    figure = draw("F03", n_layers=n).figure
    assert text_problems(figure) == []
    names = [s.label for s in shapes(figure)]
    assert sorted(names) == sorted(f"{kind} #{i}" for kind in ("encoder", "decoder") for i in range(n))
    by_name = {s.label: s for s in shapes(figure)}
    top = by_name[f"encoder #{n - 1}"]
    assert max(by_name.values(), key=lambda s: (s.label.startswith("encoder"), s.y)) == top
    sideways = [a for a in arrows(figure) if a.points[-2][1] == a.end[1]]
    assert len(sideways) == n
    for i in range(n):
        (into,) = [a for a in sideways if by_name[f"decoder #{i}"].on_edge(a.end)]
        assert into.end[0] == by_name[f"decoder #{i}"].left
    (trunk,) = touching(figure, top, end=False)  # the only line that leaves the encoders
    assert by_name["decoder #0"].on_edge(trunk.end)
    bus = trunk.points[-2][0]
    assert all(np.isclose(a.start[0], bus) for a in sideways if a is not trunk and len(a.points) == 2)
    for below, above in zip(range(n - 1), range(1, n), strict=True):
        for kind in ("encoder", "decoder"):
            ups = touching(figure, by_name[f"{kind} #{below}"], end=False)
            assert any(by_name[f"{kind} #{above}"].on_edge(a.end) for a in ups)


# F04


def test_two_and_three_sublayers():
    figure = draw("F04", d_model=96, n_heads=4, d_ff=7).figure
    left, right = sorted({s.x for s in shapes(figure)})
    attention, feed_forward = "4 heads of 24", "feed-forward\n96 → 7 → 96"
    assert column(figure, left) == [f"self-attention\n{attention}", feed_forward]
    assert column(figure, right) == [
        f"self-attention\n{attention}",
        f"encoder-decoder attention\n{attention}",
        feed_forward,
    ]
    cross = next(s for s in shapes(figure) if s.label.startswith("encoder-decoder"))
    sideways = [a for a in touching(figure, cross, end=True) if a.end[0] == cross.left]
    assert len(sideways) == 1
    assert sideways[0].start[0] == left
    assert len(loose_ends(figure)) == 2  # the outgoing line of each layer
