"""Tests of F61 to F67: the parts of newer models, and AdamW."""

import numpy as np
import pytest
from figure_cells import draw

from npformer.learn.figures.f61_to_f67_newer_parts import uses
from npformer.plots import text_problems

# F61: the curves are the bytes of real caches


def kib_of(drawing):
    """Return the lengths and the KiB of each curve, by its name."""
    (ax,) = drawing.figure.axes
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    return dict(zip(names, (line.get_data() for line in ax.lines), strict=True))


@pytest.mark.parametrize(
    "settings",
    [
        {"key_heads": (8, 2, 1), "n_heads": 8, "d_model": 128, "n_layers": 4, "longest": 64},
        {"key_heads": (6, 3), "n_heads": 6, "d_model": 24, "n_layers": 2, "longest": 16},
    ],
    ids=["eight heads", "six heads"],
)
def test_the_bytes_are_those_of_the_formula(settings):
    drawing = draw("F61", **settings)
    curves = kib_of(drawing)
    assert text_problems(drawing.figure) == []
    assert len(curves) == len(settings["key_heads"])
    width = settings["d_model"] // settings["n_heads"]
    for key_heads, (lengths, kib) in zip(settings["key_heads"], curves.values(), strict=True):
        n_bytes = 2 * settings["n_layers"] * key_heads * width * lengths * 4  # float32 has four bytes
        np.testing.assert_array_equal(kib, n_bytes / 1024)
        np.testing.assert_array_equal(lengths, np.linspace(0, settings["longest"], 9))
        assert f"{n_bytes[-1]:,} bytes with {key_heads} key head" in drawing.caption


# F62: RMS norm removes a factor, and layer norm a constant too


# F63: the drawn scores depend on distances only


def test_rotary_scores_are_equal_along_diagonals():
    maps = [ax for ax in draw("F63", length=6).figure.axes if ax.images]  # the others are colour bars
    vectors, scores = (ax.images[0].get_array() for ax in maps)
    assert vectors.shape == (6, 6)
    assert scores.shape == (6, 6)
    for offset in range(-5, 6):
        np.testing.assert_allclose(np.diagonal(scores, offset), np.diagonal(scores, offset)[0], atol=1e-12)
    assert np.ptp(scores) > 1


# F64: the gate and its activation


# F65: the lines are the heads that a change has an effect on


def test_copies_of_a_head_are_used_by_neighbours():
    np.testing.assert_array_equal(uses(4, 2), [[1, 0], [1, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(uses(4, 4), np.eye(4))
    assert uses(3, 1).all()


# F66: the mask, and what it reaches through layers


def test_a_window_reaches_further_with_each_layer():
    drawing = draw("F66", length=7, window=2, n_layers=4)
    whole, mask, shares = (ax.images[0].get_array() for ax in drawing.figure.axes)
    t = np.arange(7)
    distance = t[:, None] - t
    np.testing.assert_array_equal(whole, distance >= 0)
    np.testing.assert_array_equal(mask, (distance >= 0) & (distance < 2))
    reach = (distance >= 0) & (distance <= 4)  # one more token in each layer
    np.testing.assert_array_equal(np.ma.filled(shares, 0) > 0, reach)
    np.testing.assert_allclose(np.ma.filled(shares, 0).sum(1), 1)
    # of five tokens in a row, the paths of four layers with two ways each: 1, 4, 6, 4, 1 of 16
    np.testing.assert_allclose(shares[6, 2:], np.array([1, 4, 6, 4, 1]) / 16)
    assert "after 4 layers the last token depends on 5 tokens" in drawing.caption


# F67: the schedule, and two kinds of weight decay


def test_decoupled_decay_does_not_depend_on_the_gradient():
    drawing = draw("F67", steps=200)
    schedule, weights = (ax.lines for ax in drawing.figure.axes)
    rates = schedule[0].get_ydata()
    assert rates.argmax() == 49
    assert rates[-1] == pytest.approx(0.1 * rates.max())
    small, large, small_l2, large_l2 = (line.get_ydata() for line in weights)
    np.testing.assert_allclose(small[-1], large[-1], rtol=1e-5)
    assert small[-1] == pytest.approx((1 - 0.01 * 0.1) ** 200, rel=0.02)  # Adam's own first steps are small
    assert small_l2[-1] < 0.5 * small[-1] < 0.5 * large_l2[-1]
