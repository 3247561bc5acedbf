"""Tests of F67: the schedule, and two kinds of weight decay."""

import numpy as np
import pytest

from npformer.learn.figures import draw


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
