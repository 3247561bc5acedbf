"""Tests of F22 to F28: word vectors, position vectors and one encoder, compared with layers and formulas."""

import math

import numpy as np
import pytest
from datawhale_oracle import encoder
from figure_cells import named, picture, shows, texts

from npformer.learn.figures.f22_to_f28_one_encoder import period, short


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


def test_short_numbers():
    values = (0, 1, -1, 0.99999998, 0.8415, 0.0001, -0.0002, 0.5403, -0.4161, 0.995)
    assert [short(v) for v in values] == ["0", "1", "−1", "1", ".84", ".0001", "−.0002", ".54", "−.42", ".99"]


@pytest.mark.parametrize("layout", ["interleaved", "halves", "jianshu"])
def test_f25_curves(layout):
    settings = {"dims": (0, 3), "length": 30, "d_model": 8, "layout": layout}
    ax = picture("F25", **settings).axes[0]
    values = np.array([vector(position, 8, layout) for position in range(30)])
    lines = [line for line in ax.lines if not line.get_label().startswith("_leader")]
    assert len(lines) == len(settings["dims"])
    for line, dim in zip(lines, settings["dims"], strict=True):
        assert np.allclose(line.get_ydata(), values[:, dim])


@pytest.mark.parametrize("layout", ["interleaved", "halves", "jianshu", "marian"])
def test_a_period_is_where_a_dimension_repeats(layout):
    for dim in range(8):
        once = period(dim, 8, layout)
        assert vector(3 + once, 8, layout)[dim] == pytest.approx(vector(3, 8, layout)[dim], abs=1e-9)
        if once < 1e4:
            assert abs(vector(3 + once / 2, 8, layout)[dim] + vector(3, 8, layout)[dim]) < 1e-9


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
