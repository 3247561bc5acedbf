"""Tests of curves: their rows, their labels and their errors."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.functional.positions import sinusoids
from npformer.plots import Curve, Panel, curve_page, curves, text_problems


def texts(ax):
    return [t.get_text() for t in ax.texts]


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
        assert sample._unscaled_dash_pattern == line._unscaled_dash_pattern  # get_linestyle() only says "--"
        assert sample.get_ydata()[0] == pytest.approx(name.get_position()[1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("position", "value")
    assert text_problems(figure) == []


def test_numbers_without_neighbours_have_dots():
    lines = curves([[1, np.nan, 3, 4], [1, 2, 3, 4]]).axes[0].lines
    assert [line.get_marker() for line in lines] == ["o", "None"]
    assert lines[0].get_markevery().tolist() == [True, False, False, False]


def test_wrong_curves_are_refused():
    for wrong in (
        lambda: curves([1, 2], [1, np.inf]),
        lambda: curves([[1], [2, 3]]),
        lambda: curve_page([Panel("loss", [Curve([1], [1])])], columns=0),
        lambda: curves(np.ones((2, 3)), [1, 2]),
        lambda: curves([1, 2], xscale="logarithmic"),
        lambda: curves(np.ones((2, 3)), labels=["a"]),
        lambda: curves(np.ones((90, 3)), labels=["a"] * 90),
        lambda: curves(np.ones((90, 3)), labels=["a"] * 90, legend=True),
        lambda: curves(np.ones((2, 3, 4))),
    ):
        with pytest.raises(UserError):
            wrong()
