"""Tests of F22 to F28: word vectors, position vectors and one encoder, compared with layers and formulas."""

import math

import numpy as np
import pytest
from datawhale_oracle import embedding, encoder
from figure_cells import as_text, draw, grids, named, picture, places, shows, texts

from npformer.learn.figures.f22_to_f28_one_encoder import period, short
from npformer.nn import Embedding
from npformer.plots import text_problems


def vector(position, d_model, layout):
    """Compute one position vector number by number."""
    if layout in ("halves", "marian"):
        half = d_model // 2
        steps = max(1, half - 1) if layout == "halves" else half
        angles = [position / 10000 ** (i / steps) for i in range(half)]
        return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
    exponents = [(2 * i if layout == "jianshu" else i - i % 2) / d_model for i in range(d_model)]
    return [
        (math.cos if i % 2 else math.sin)(position / 10000**exponent) for i, exponent in enumerate(exponents)
    ]


def table(length, d_model, layout):
    return np.array([vector(position, d_model, layout) for position in range(length)])


# F22 and F23


def test_f22_words_as_vectors():
    figure = picture("F22")
    x, _, _ = embedding([0, 1, 2])
    drawn = named(figure)
    assert all(shows(drawn[f"x_{i + 1}"][0], x[i]) for i in range(3))
    at = {text: place for text, place, _ in places(figure)}
    for i, word in enumerate(["Je", "suis", "étudiant"]):
        cells = drawn[f"x_{i + 1}"][0]
        assert cells.left < at[word] < cells.right
    other, _, _ = embedding([0, 1, 0], seed=5)
    drawn = named(picture("F22", sentence="non et non", seed=5))
    assert all(shows(drawn[f"x_{i + 1}"][0], other[i]) for i in range(3))
    assert not shows(drawn["x_1"][0], x[0])


@pytest.mark.parametrize("positions", ["interleaved", "halves"])
def test_f23_time_signal(positions):
    figure = picture("F23", positions=positions)
    drawn = named(figure)
    for name, values in zip(("x", "t", "x'"), embedding([0, 1, 2], positions=positions), strict=True):
        assert all(shows(drawn[f"{name}_{i + 1}"][0], values[i]) for i in range(3)), name
    for i in "123":  # the sum above the time signal above the word, in one column
        column = [drawn[f"{name}_{i}"][0] for name in ("x'", "t", "x")]
        assert [c.top for c in column] == sorted((c.top for c in column), reverse=True)
        assert {round(c.left, 6) for c in column} == {round(column[0].left, 6)}
    assert {"encoder #0", "encoder #1", "+", "="} <= {text for text, _, _ in places(figure)}


def test_the_caption_of_f23_quotes_the_first_sum():
    assert as_text(embedding([0, 1, 2])[2][0]) in draw("F23").caption


# F24 to F26


def test_f24_prints_the_numbers_of_the_document():
    figure = picture("F24")
    drawn = named(figure)
    printed = [[0, 0, 1, 1], [0.84, 0.0001, 0.54, 1], [0.91, 0.0002, -0.42, 1]]
    for i, row in enumerate(printed):
        assert drawn[f"t_{i + 1}"][0].values.tolist() == [row]
        assert np.allclose(row, vector(i, 4, "halves"), atol=0.005)
    assert {"0", ".84", ".0001", ".54", "1", ".91", ".0002", "−.42"} <= {t for t, _, _ in places(figure)}
    embed = Embedding(3, 4, scale=2.0, rng=np.random.default_rng(2), dtype=np.float64)
    x, _ = embed.forward(np.arange(3))
    assert all(shows(drawn[f"x_{i + 1}"][0], x[i]) for i in range(3))
    for i in range(3):  # above the word vector to which it is added
        assert drawn[f"t_{i + 1}"][0].left == pytest.approx(drawn[f"x_{i + 1}"][0].left)
        assert drawn[f"t_{i + 1}"][0].bottom > drawn[f"x_{i + 1}"][0].top


@pytest.mark.parametrize(
    ("layout", "d_model"), [("interleaved", 4), ("jianshu", 4), ("halves", 6), ("marian", 4)]
)
def test_f24_other_layouts(layout, d_model):
    figure = picture("F24", layout=layout, d_model=d_model)
    drawn = named(figure)
    assert all(shows(drawn[f"t_{i + 1}"][0], vector(i, d_model, layout)) for i in range(3))
    assert len(grids(figure)) == 6


def test_short_numbers():
    values = (0, 1, -1, 0.99999998, 0.8415, 0.0001, -0.0002, 0.5403, -0.4161, 0.995)
    assert [short(v) for v in values] == ["0", "1", "−1", "1", ".84", ".0001", "−.0002", ".54", "−.42", ".99"]


@pytest.mark.parametrize(
    "changes",
    [{}, {"dims": (0, 3)}, {"length": 30, "d_model": 8}, {"layout": "halves"}, {"layout": "jianshu"}],
)
def test_f25_curves(changes):
    figure = picture("F25", **changes)
    settings = {"dims": (4, 5, 6, 7), "length": 100, "d_model": 20, "layout": "interleaved"} | changes
    ax = figure.axes[0]
    values = table(settings["length"], settings["d_model"], settings["layout"])
    lines = [line for line in ax.lines if not line.get_label().startswith("_leader")]
    assert len(lines) == len(settings["dims"])
    for line, dim in zip(lines, settings["dims"], strict=True):
        assert np.allclose(line.get_xdata(), np.arange(settings["length"]))
        assert np.allclose(line.get_ydata(), values[:, dim])
        assert np.abs(line.get_ydata()).max() <= 1
    legend = ax.get_legend()
    assert [t.get_text() for t in legend.get_texts()] == [f"dim {dim}" for dim in settings["dims"]]
    assert [h.get_color() for h in legend.legend_handles] == [line.get_color() for line in lines]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("position", "value")
    assert text_problems(figure) == []


def test_the_caption_of_f25_names_the_periods_of_the_document():
    caption = draw("F25").caption
    assert "39.64 positions in dims 4 and 5, 99.58 positions in dims 6 and 7" in caption


@pytest.mark.parametrize("layout", ["interleaved", "halves", "jianshu", "marian"])
def test_a_period_is_where_a_dimension_repeats(layout):
    for dim in range(8):
        once = period(dim, 8, layout)
        assert vector(3 + once, 8, layout)[dim] == pytest.approx(vector(3, 8, layout)[dim], abs=1e-9)
        if once < 1e4:
            assert abs(vector(3 + once / 2, 8, layout)[dim] + vector(3, 8, layout)[dim]) < 1e-9


@pytest.mark.parametrize(
    "changes", [{}, {"upper": (12, 32, "jianshu"), "lower": (30, 16, "halves")}, {"lower": (1, 2, "halves")}]
)
def test_f26_heat_maps(changes):
    figure = picture("F26", **changes)
    tables = {"upper": (20, 512, "halves"), "lower": (10, 64, "interleaved")} | changes
    maps = [ax for ax in figure.axes if ax.images]
    assert len(maps) == 2
    for ax, which in zip(maps, (tables["upper"], tables["lower"]), strict=True):
        image = ax.images[0]
        assert np.allclose(image.get_array(), table(*which))
        low, high = ax.get_ylim()
        assert low > high  # position 0 is at the top
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("embedding dimension", "token position")
        assert f"{which[0]} × {which[1]}" in ax.get_title(loc="left")
        assert image.norm.vmin == -image.norm.vmax
    upper, lower = (ax.get_position() for ax in maps)
    assert upper.y0 > lower.y1
    assert text_problems(figure) == []


@pytest.mark.parametrize(("id", "words"), [("F27", 3), ("F28", 2)])
def test_f27_f28_one_encoder(id, words):
    figure = picture(id)
    x, z, normalised, r = encoder(words)
    drawn = named(figure)
    for name, values in (("x", x), ("z", normalised), ("r", r)):
        assert all(shows(drawn[f"{name}_{i + 1}"][0], values[i]) for i in range(words)), name
    assert not shows(drawn["z_1"][0], z[0])
    assert drawn["x_1"][0].top < drawn["z_1"][0].bottom < drawn["z_1"][0].top < drawn["r_1"][0].bottom
    assert texts(figure).count("self-attention") == 1
    assert texts(figure).count("feed-forward") == (1 if id == "F27" else 2)
    changed = named(picture(id, seed=3))
    assert all(shows(changed[f"r_{i + 1}"][0], encoder(words, seed=3)[3][i]) for i in range(words))
    assert not shows(changed["r_1"][0], r[0])


def test_the_caption_of_f28_quotes_the_output():
    _, _, _, r = encoder(2)
    assert as_text(r[0]) in draw("F28").caption
