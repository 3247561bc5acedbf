"""Tests of F63: the drawn scores depend on distances only."""

import numpy as np

from npformer.learn.figures import draw


def test_rotary_scores_are_equal_along_diagonals():
    vectors, scores = (ax.images[0].get_array() for ax in draw("F63", length=6).figure.axes)
    assert vectors.shape == (6, 6)
    assert scores.shape == (6, 6)
    for offset in range(-5, 6):
        np.testing.assert_allclose(np.diagonal(scores, offset), np.diagonal(scores, offset)[0], atol=1e-12)
    assert np.ptp(scores) > 1
