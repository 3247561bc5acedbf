"""Tests of curves, bars, beam trees, boxes and arrows."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from tiny import tiny_batch, tiny_model

from npformer.errors import UserError
from npformer.functional.positions import sinusoids
from npformer.generation.beam import beam_search
from npformer.plots import (
    beam_tree,
    curves,
    layer_pair,
    probability_bars,
    probability_panels,
    save,
    steps_of_trace,
    text_problems,
)
from npformer.plots.boxes import Box, around, arrow, draw_box, elbow, frame, sign, stack, tower
from npformer.plots.layout import new_figure, root, sheet
from npformer.plots.search_tree import Node
from npformer.plots.style import drawing

FEW = ["a", "am", "I", "thanks", "étudiant", "<eos>"]


def texts(ax):
    return [t.get_text() for t in ax.texts]


# Curves.


def test_curves_show_the_rows():
    table = sinusoids(100, 20)[:, 4:8].T  # (4, 100)
    before = table.copy()
    figure = curves(
        table, labels=[f"dim {i}" for i in range(4, 8)], xlabel="position", ylabel="value", title="t"
    )
    ax = figure.axes[0]
    drawn = [line for line in ax.lines if not line.get_label().startswith("_")] or ax.lines[:4]
    assert np.array_equal([line.get_ydata() for line in ax.lines[:4]], before)
    assert all(np.array_equal(line.get_xdata(), np.arange(100)) for line in ax.lines[:4])
    assert len({(line.get_color(), line.get_linestyle()) for line in drawn[:4]}) == 4
    assert texts(ax) == ["dim 4", "dim 5", "dim 6", "dim 7"]
    samples = [line for line in ax.lines if line.get_label() == "_sample"]
    for name, line, sample in zip(ax.texts, ax.lines[:4], samples, strict=True):
        assert sample.get_color() == line.get_color()
        assert sample.get_ydata()[0] == pytest.approx(name.get_position()[1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("position", "value")
    assert text_problems(figure) == []


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("legend", [False, True])
def test_difficult_curves_are_legible(scale, legend):
    x = np.arange(1, 51)
    y = x ** -np.linspace(0.5, 0.52, 12)[:, None]
    y[3, 40:] = np.nan
    labels = [f"été {i} $x_1$" for i in range(12)]
    figure = curves(y, x, labels=labels, xscale=scale, yscale=scale, legend=legend)
    assert text_problems(figure) == []
    assert text_problems(curves([1.0])) == []


def test_labels_of_curves_are_in_the_order_of_their_ends():
    figure = curves([[0, 3], [0, 1], [0, 2]], labels=["top", "low", "middle"])
    heights = {t.get_text(): t.get_position()[1] for t in figure.axes[0].texts}
    assert heights["top"] > heights["middle"] > heights["low"]


def test_wrong_curves_are_refused():
    for wrong in (
        lambda: curves(np.ones((2, 3)), [1, 2]),
        lambda: curves([1, 2], xscale="logarithmic"),
        lambda: curves(np.ones((2, 3)), labels=["a"]),
        lambda: curves(np.ones((90, 3)), labels=["a"] * 90),
        lambda: curves(np.ones((90, 3)), labels=["a"] * 90, legend=True),
        lambda: curves(np.ones((2, 3, 4))),
    ):
        with pytest.raises(UserError):
            wrong()


# Bars.


def test_bars_are_as_long_as_the_probabilities():
    model, target = np.array([0.2, 0.2, 0.1, 0.2, 0.2, 0.1]), np.eye(6)[3]
    figure = probability_bars(model, FEW, target=target, title="merci")
    ax = figure.axes[0]
    first, second = ax.containers
    assert [bar.get_width() for bar in first] == model.tolist()
    assert [bar.get_width() for bar in second] == target.tolist()
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == FEW
    for place, bar, other in zip(ax.get_yticks(), first, second, strict=True):
        middle = (bar.get_y() + other.get_y() + other.get_height()) / 2
        assert middle == pytest.approx(place)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first word is at the top
    assert sorted(texts(ax)) == sorted([".20", ".20", ".10", ".20", ".20", ".10", "1.00"])
    assert text_problems(figure) == []


def test_panels_for_positions():
    rows = np.array([[0.01, 0.02, 0.93, 0.01, 0.02, 0.01], [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]])
    figure = probability_panels(
        rows, FEW, ["#1", "#2"], target=np.eye(6)[[2, 0]], decimals=3, title="trained"
    )
    assert [[b.get_width() for b in ax.containers[0]] for ax in figure.axes] == rows.tolist()
    assert [ax.get_title() for ax in figure.axes] == ["#1", "#2"]
    assert ".930" in texts(figure.axes[0])
    assert text_problems(figure) == []


def test_difficult_bars():
    rng = np.random.default_rng(0)
    assert text_problems(probability_bars(rng.dirichlet(np.ones(40)), ["Donaudampf$1"] * 40)) == []
    assert text_problems(probability_bars([1.0], ["a"], target=[1.0])) == []
    for wrong in (
        lambda: probability_bars(rng.dirichlet(np.ones(99)), ["a"] * 99),
        lambda: probability_bars([2.0, -1.0], ["a", "b"]),
        lambda: probability_bars([np.nan], ["a"]),
        lambda: probability_bars([1.0], ["a"], target=[0.5, 0.5]),
        lambda: probability_panels(np.eye(40), ["a"] * 40),
        lambda: probability_bars(np.ones(9) / 9, ["a"] * 9, ax=new_figure(3, 1).add_axes((0.1, 0, 0.8, 0.8))),
    ):
        with pytest.raises(UserError):
            wrong()


# Beam trees.

TREE = [
    [(-1, "I", -0.3, True), (-1, "a", -0.6, True), (-1, "am", -2.4, False)],
    [(1, "student", -1.0, True), (0, "am", -0.5, True), (0, "été", -1.9, False)],
    [(1, "a", -0.7, True), (0, "</s>", -1.4, True)],
]


def test_a_branch_connects_each_token_to_its_parent():
    figure = beam_tree(TREE, title="k = 2")
    ax = figure.axes[0]
    places = {(round(t.get_position()[0], 3), t.get_text()): t.get_position()[1] for t in ax.texts}
    columns = sorted({x for x, _ in places})
    assert len(columns) == 4
    middle = {(columns.index(x) - 1, name): y for (x, name), y in places.items()}
    nodes = [(t, node) for t, step in enumerate(TREE) for node in step]
    ends = sorted((*np.round(line.get_ydata(), 3), line.get_linewidth() > 2) for line in ax.lines)

    def height(t, name):  # the middle of a node, half a line below its word
        return middle[-1, "<s>"] if t < 0 else middle[t, name] - 9 * 1.25 / 72 / 2

    wanted = [
        (round(height(t - 1, TREE[t - 1][parent][1] if t else ""), 3), round(height(t, word), 3), kept)
        for t, (parent, word, _, kept) in nodes
    ]
    assert np.allclose(ends, sorted(wanted), atol=2e-3)
    assert {"−.30", "−2.40", "−1.40"} <= set(texts(ax))
    assert text_problems(figure) == []


def test_the_tree_of_a_real_search():
    model, trace = tiny_model(), []
    beam_search(model, tiny_batch()[0], beam=3, trace=trace)
    vocabulary = [f"w{i}" for i in range(9)]
    steps = steps_of_trace(trace[0], vocabulary, model.config.end_id)
    assert [[(n.parent, n.log_prob) for n in s] for s in steps] == [
        [(b.parent, b.log_prob) for b in s] for s in trace[0]
    ]
    assert steps[0][0].token == vocabulary[trace[0][0][0].token]
    for t, step in enumerate(steps[:-1]):
        for index, node in enumerate(step):
            led_on = any(later.parent == index for later in steps[t + 1])
            assert node.kept == (led_on or trace[0][t][index].token == model.config.end_id)
    assert text_problems(beam_tree(steps)) == []


def test_difficult_trees():
    wide = [[Node(-1, "Donaudampf $1", -0.5, True)] * 20]
    assert text_problems(beam_tree(wide)) == []
    for wrong in ([], [[]], [[(0, "a", -1.0, True)]], [[(-1, "a", -1.0, True)], [(1, "b", -2.0, True)]]):
        with pytest.raises(UserError):
            beam_tree(wrong)
    with pytest.raises(UserError, match="does not fit"):
        beam_tree([[(-1, "a", -1.0, True)]] + [[(0, "a", -1.0, True)]] * 30)


# Boxes and arrows.


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


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_bytes_are_reproducible(tmp_path, ending):
    kinds = (
        lambda: curves(sinusoids(30, 4).T, labels=list("abcd")),
        lambda: probability_bars([0.25, 0.75], ["a", "b"], target=[0, 1]),
        lambda: beam_tree(TREE),
        lambda: layer_pair(),
    )
    for draw in kinds:
        first, second = (save(draw(), tmp_path / f"{i}.{ending}").read_bytes() for i in range(2))
        assert first == second
