"""Tests of F18: the picture of multi-head attention follows the configuration."""

import pytest
from figure_boxes import loose_ends, shapes
from figure_cells import draw, texts
from matplotlib.patches import Rectangle


def piles(figure):
    """Return the number of rectangles behind each box."""
    return sum(type(patch) is Rectangle for patch in figure.axes[0].patches)


@pytest.mark.parametrize(("heads", "behind"), [(1, 0), (2, 1), (8, 2)])
def test_heads_are_drawn_as_piles(heads, behind):
    figure = draw("F18", n_heads=heads).figure
    assert f"h = {heads}" in texts(figure)
    assert piles(figure) == 4 * behind  # three linear maps and the attention
    width = 512 // heads
    names = [s.label for s in shapes(figure)]
    assert names.count(f"linear\n512 → {width}") == 3 + (heads == 1)
    joined = [f"concat\n{heads} × {width} = 512"] if heads > 1 else []
    assert names[-1 - len(joined) - 1 :] == ["scaled dot-product attention", *joined, "linear\n512 → 512"]
    assert names[:3] == ["V", "K", "Q"]
    assert len(loose_ends(figure)) == 1


def test_widths_and_missing_parts_follow_the_configuration():
    figure = draw("F18", d_model=96, n_heads=4, d_head=16, d_value=10).figure
    names = [s.label for s in shapes(figure)]
    assert names[3:6] == ["linear\n96 → 10", "linear\n96 → 16", "linear\n96 → 16"]  # V, K, Q
    assert names[-2:] == ["concat\n4 × 10 = 40", "linear\n40 → 96"]
    first_document = draw("F18", architecture="jianshu-demo")
    names = [s.label for s in shapes(first_document.figure)]
    assert names[3:6] == ["linear, relu\n512 → 64"] * 3
    assert names[-1] == "concat\n8 × 64 = 512"
    assert "last linear" not in first_document.caption
