"""Tests of grids of cells, their products, and lines between tokens."""

import matplotlib.colors
import numpy as np
import pytest

from npformer.errors import UserError
from npformer.plots import cell_grid, cell_product, text_problems, word_lines
from npformer.plots.attention_lines import strongest
from npformer.plots.layout import new_figure
from npformer.plots.palette import COLOURS, EDGES, head_colour

rgb = matplotlib.colors.to_rgb
THIRDS, ABC = np.full((3, 3), 1 / 3), list("abc")


def squares(figure):
    """Return for each grid, from left to right: (corners (N, 4, 2), face colours (N, 3), edge)."""
    found = []
    for collection in figure.axes[0].collections:
        corners = np.array([path.vertices[:4] for path in collection.get_paths()])
        found.append((corners, collection.get_facecolors()[:, :3], collection.get_edgecolors()[0, :3]))
    return sorted(found, key=lambda grid: grid[0].min((0, 1))[0])


def test_cells_have_the_numbers_of_the_matrix_in_the_same_order():
    matrix = np.arange(6.0).reshape(2, 3) / 10
    before = matrix.copy()
    figure = cell_grid(matrix, numbers=True, colour="q", rows=["Je", "été"], columns=list("abc"), label="$Q$")
    ((corners, faces, edge),) = squares(figure)
    assert np.allclose(faces, rgb(COLOURS["q"]))
    assert np.allclose(edge, rgb(EDGES["q"]))
    centres = corners.mean(1).reshape(2, 3, 2)
    assert (np.diff(centres[..., 0], axis=1) > 0).all()
    assert (np.diff(centres[..., 1], axis=0) < 0).all()  # the first row is at the top
    numbers = {t.get_text(): t.get_position() for t in figure.axes[0].texts}
    for (i, j), value in np.ndenumerate(matrix):
        assert np.allclose(numbers[f"{value:.2f}"[1:]], centres[i, j])
    assert numbers["Je"][1] == pytest.approx(centres[0, 0, 1])
    assert numbers["été"][1] == pytest.approx(centres[1, 0, 1])
    assert numbers["c"][0] == pytest.approx(centres[0, 2, 0])
    assert np.array_equal(matrix, before)
    assert text_problems(figure) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"matrix": np.ones((1, 1)), "label": "a long label over one cell", "show_shape": True},
        {"matrix": 100 * np.random.default_rng(0).normal(size=(40, 20)), "rows": ["mot"] * 40},
        {"matrix": np.arange(20).reshape(4, 5) - 9, "columns": ["anticonstitutionnel"] * 5},
        {"matrix": [np.inf, -np.inf, np.nan, 1e-9], "shade": True, "columns": ["$a", "b$", "", " "]},
    ],
)
def test_difficult_grids_are_legible(settings):
    assert text_problems(cell_grid(**settings, numbers=True)) == []


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda: cell_grid(np.ones((4, 512))), "does not fit.*draw fewer"),
        (lambda: cell_grid(np.ones((2, 2)), rows=["a"]), "rows has 1 label: give 2"),
        (lambda: cell_grid(np.ones((2, 2, 2))), "2 axes"),
        (lambda: cell_grid(np.ones((2, 2)), colour="nice"), "not a colour"),
        (lambda: cell_product(["="]), "no grid"),
        (lambda: cell_grid(np.ones((9, 9)), ax=new_figure(1, 1).add_axes((0, 0, 1, 1))), "make them larger"),
        (lambda: cell_grid(np.ones((3, 3)), padded=np.ones(3)), "padded"),
        (lambda: cell_grid(np.ones((3, 3)), padded=np.ones(2, bool)), "padded"),
        (lambda: cell_grid(np.ones((3, 3)), painted=[("q", np.eye(2) > 0)]), "must broadcast to"),
        (lambda: cell_grid([[1], [2, 3]]), "rows of different lengths"),
        (lambda: word_lines(THIRDS, ABC, ABC, every=0), "every is 0"),
        (lambda: word_lines(THIRDS, ABC, ABC, query=3), "query is 3: there are 3 queries"),
        (lambda: word_lines(THIRDS, ABC, ABC, query="a"), "query is 'a': there are 3 queries"),
        (lambda: word_lines(THIRDS, ABC, ABC, query=1.5), "query is 1.5: there are 3 queries"),
        (lambda: word_lines(THIRDS, ABC, ABC, most=0), "most is 0: it must be a whole number, 1 or more"),
        (lambda: word_lines(np.stack([THIRDS] * 2), ABC, ABC, heads=3), "heads names 1 head"),
        (lambda: word_lines(THIRDS, ABC, ABC, heads=["a"]), "head is 'a'"),
        (lambda: word_lines(THIRDS, ABC, ABC, title=5), "5 is not a text: give a string, or a list"),
        (lambda: cell_grid(np.eye(2), label="$x_1_2$"), r"the formula 'x_1_2' cannot be drawn \(Double sub"),
        (lambda: word_lines(THIRDS, ABC, ABC, title=r"a $\foo$"), r"foo' cannot.*Unknown symbol.*write \\\$"),
        (lambda: word_lines(THIRDS, ABC, ABC, heads=[1, 2]), "names 2 heads"),
        (lambda: word_lines(-THIRDS, ABC, ABC), "not negative"),
        (lambda: word_lines(THIRDS * np.nan, ABC, ABC), "finite"),
        (lambda: word_lines(np.ones((120, 1)), ["a"] * 120, ["b"]), "120 words does not fit"),
        (lambda: word_lines(THIRDS, ABC[:2], ABC), "queries has 2 labels"),
        (lambda: word_lines(THIRDS, ABC, ABC, names=["one", "two"]), "names has 2 labels"),
    ],
)
def test_invalid_grids_and_lines_are_refused(draw, sentence):
    with pytest.raises(UserError, match=sentence):
        draw()


# Lines between words.

WORDS = ["The", "animal", "didn't", "cross", "it"]


def lines_of(figure):
    """Return for each head: (segments (N, 2, 2), widths (N,), colours (N, 4))."""
    found = [c for c in figure.axes[0].collections if c.get_label().startswith("head")]
    return [(np.array(c.get_segments()), np.array(c.get_linewidths()), c.get_colors()) for c in found]


def height_of(figure, word, side):
    """Return the height of a word in the left or right column."""
    places = [t.get_position() for t in figure.axes[0].texts if t.get_text() == word]
    return (min if side == "left" else max)(places)[1]


def test_ends_width_and_colour_of_a_line_show_query_key_and_weight():
    weights = np.zeros((5, 3))
    weights[4, 0], weights[1, 2], weights[0, 1] = 0.9, 0.3, 0.001
    before = weights.copy()
    figure = word_lines(weights, WORDS, ["une", "clé", "or"])
    ((segments, widths, colours),) = lines_of(figure)
    assert widths.tolist() == pytest.approx([5 * 0.3, 5 * 0.9])
    assert np.allclose(colours[:, :3], rgb(head_colour(0)))
    assert colours[1, 3] > colours[0, 3]
    for segment, query, key in zip(segments, ["animal", "it"], ["or", "une"], strict=True):
        assert segment[0, 1] == pytest.approx(height_of(figure, query, "left"))
        assert segment[1, 1] == pytest.approx(height_of(figure, key, "right"))
        assert segment[0, 0] < segment[1, 0]
    assert np.array_equal(weights, before)
    assert text_problems(figure) == []


def test_one_query_of_two_heads():
    weights = np.random.default_rng(0).dirichlet(np.ones(5), (2, 5))
    figure = word_lines(weights, WORDS, WORDS, query=4, heads=[1, 7], title="it")
    (_, widths, orange), (_, second, _) = lines_of(figure)
    shown = weights[:, 4] >= 0.01
    assert widths == pytest.approx(5 * weights[0, 4][shown[0]])
    assert second == pytest.approx(5 * weights[1, 4][shown[1]])
    assert np.allclose(orange[:, :3], rgb(head_colour(1)))
    blocks = [c for c in figure.axes[0].collections if not c.get_label().startswith("head")]
    assert [b.get_facecolors()[:, 3] for b in blocks] == [pytest.approx(w) for w in weights[:, 4]]
    assert np.allclose(blocks[1].get_facecolors()[:, :3], rgb(head_colour(7)))
    marked = [t.get_text() for t in figure.axes[0].texts if t.get_weight() == "bold"]
    assert marked == ["it", "1", "7"]
    assert text_problems(figure) == []


def test_of_many_lines_only_the_strongest_are_drawn():
    heads, n = 3, 30
    weights = np.random.default_rng(0).dirichlet(np.full(n, 0.3), (heads, n))
    figure = word_lines(weights, [f"w{i}" for i in range(n)], [f"w{i}" for i in range(n)])
    widths = np.concatenate([widths for _, widths, _ in lines_of(figure)])
    assert sorted(widths) == pytest.approx(5 * np.sort(weights, None)[-2 * n :])  # two for each query
    count = (weights >= 0.01).sum()
    (note,) = [t.get_text() for t in figure.axes[0].texts if "strongest" in t.get_text()]
    assert note.startswith(f"the {2 * n} strongest of {count} lines: weights from .")
    drawn, _ = strongest(np.full((1, 4, 4), 0.25), np.ones(4, bool), 3)  # of equal ones, the first
    assert np.flatnonzero(drawn).tolist() == [0, 1, 2]
    assert text_problems(figure) == []
