"""Tests of F61: the curves are the bytes of real caches."""

import numpy as np
import pytest

from npformer.learn.figures import draw
from npformer.plots import text_problems


def drawn(drawing):
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
    curves = drawn(drawing)
    assert text_problems(drawing.figure) == []
    assert len(curves) == len(settings["key_heads"])
    width = settings["d_model"] // settings["n_heads"]
    for key_heads, (lengths, kib) in zip(settings["key_heads"], curves.values(), strict=True):
        n_bytes = 2 * settings["n_layers"] * key_heads * width * lengths * 4  # float32 has four bytes
        np.testing.assert_array_equal(kib, n_bytes / 1024)
        np.testing.assert_array_equal(lengths, np.linspace(0, settings["longest"], 9))
        assert f"{n_bytes[-1]:,} bytes with {key_heads} key head" in drawing.caption


def test_the_curves_have_the_names_of_the_three_kinds():
    names = list(drawn(draw("F61", longest=8, n_layers=1)))
    assert names == ["8 key heads (multi-head)", "2 key heads (grouped)", "1 key head (multi-query)"]
