"""The raster of a figure, which terminals without images show."""

import numpy as np
import pytest

from npformer.plots import attention_map, curves
from npformer.plots.layout import axes_at, new_figure
from npformer.plots.raster import rasterize
from npformer.plots.style import drawing


@pytest.fixture
def figure():
    """Return a figure of 4 × 2 inches: the left half is red, with a text, and a thin line is at the right."""
    with drawing():
        figure = new_figure(4, 2)
        ax = axes_at(figure, 0, 0, 4, 2)
        ax.axis("off")
        ax.set(xlim=(0, 4), ylim=(0, 2))
        ax.fill_between([0, 2], 0, 2, color="#ff0000", linewidth=0)
        ax.axvline(3, color="#0000ff", linewidth=1.5)
        ax.text(1, 1.5, "a $b_1$", ha="center", va="center", color="#00ff00")
        ax.text(3.5, 1, "up", ha="center", va="center", rotation=90)
        return figure


def test_a_raster_has_the_colours_and_the_texts(figure):
    pixels, labels = rasterize(figure, 40, 40)
    assert pixels.shape == (20, 40, 3)
    assert pixels.dtype == np.uint8
    assert (pixels[:, :19] == (255, 0, 0)).all(), "the text is not drawn"
    blue = np.flatnonzero(pixels[5, :, 0] < 200)
    assert set(blue) <= {29, 30}, "a thin line is visible, and it is one line"
    assert len(blue)
    assert (pixels[:, 22:28] == 255).all()
    first, second = labels
    assert (first.text, first.angle, first.colour) == ("a $b_1$", 0, "#00ff00")
    assert (second.text, second.angle) == ("up", 90)
    np.testing.assert_allclose((first.x, first.y), (10, 5), atol=1)
    np.testing.assert_allclose((second.x, second.y), (35, 10), atol=1)


def test_the_shape_of_a_figure_is_kept(figure):
    assert rasterize(figure, 40, 10).pixels.shape == (10, 20, 3)
    assert rasterize(figure, 1, 1).pixels.shape == (1, 1, 3)


def test_a_figure_is_the_same_afterwards(tmp_path):
    for figure in (attention_map(np.eye(3), list("abc"), list("abc")), curves(np.eye(3))):
        dpi = figure.dpi
        figure.savefig(tmp_path / "before.png", metadata={"Software": None})
        rasterize(figure, 80, 40)
        assert figure.dpi == dpi
        figure.savefig(tmp_path / "after.png", metadata={"Software": None})
        assert (tmp_path / "before.png").read_bytes() == (tmp_path / "after.png").read_bytes()
