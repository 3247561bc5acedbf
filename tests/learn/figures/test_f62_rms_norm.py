"""Tests of F62: RMS norm removes a factor, and layer norm a constant too."""

import numpy as np
from figure_cells import texts

from npformer.functional import rms_norm
from npformer.learn.figures import draw


def test_rms_norm_keeps_the_mean_and_layer_norm_does_not():
    picture = draw("F62", d_model=3, factor=4.0, shift=2.0).figure
    x = np.random.default_rng(0).standard_normal(3)
    row = rms_norm(np.stack([x, 4 * x, x + 2]), np.ones(3))[0]
    assert {"x", "4 x", "x + 2"} <= set(texts(picture))
    for number in row.ravel():
        assert f"{abs(number):.2f}".lstrip("0") in " ".join(texts(picture))
