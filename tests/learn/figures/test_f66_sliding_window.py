"""Tests of F66: the mask, and what it reaches through layers."""

import numpy as np

from npformer.learn.figures import draw


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
