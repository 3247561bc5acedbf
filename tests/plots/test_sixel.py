"""Tests of Sixel graphics: a small decoder reads them as a terminal does."""

import numpy as np
import pytest
from sixel_decoder import decode

from npformer.plots import cell_grid
from npformer.plots.composition import picture
from npformer.plots.sixel import encode, sixel_picture

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1), (6, 9), (7, 300), (13, 40), (24, 2)])
@pytest.mark.parametrize("colours", [1, 3, 256])
def test_every_pixel_has_its_colour(shape, colours):
    indices = RNG.integers(colours, size=shape).repeat(3, axis=1)  # runs of equal pixels
    palette = RNG.integers(256, size=(colours, 3))
    pixels = decode(encode(indices, palette))
    np.testing.assert_array_equal(pixels, np.round(palette / 2.55)[indices])


@pytest.mark.parametrize("colours", [2, 16, 256])
def test_a_figure_keeps_its_pixels_and_the_terminals_number_of_colours(colours):
    figure = cell_grid(RNG.normal(size=(4, 5)), numbers=True, shade=True, colour="q")
    pixels = decode(sixel_picture(figure, 70, colours))
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) <= colours
    assert (pixels >= 0).all(), "every pixel is drawn"
    quantized = picture(figure, 70).quantize(colours, dither=0).convert("RGB")
    np.testing.assert_array_equal(pixels, np.round(np.asarray(quantized) / 2.55))
    if colours == 256:  # a figure has few colours besides those at the edges of letters
        assert np.abs(pixels * 2.55 - np.asarray(picture(figure, 70))).mean() < 1
