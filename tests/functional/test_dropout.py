"""Dropout: the share of dropped numbers, and what needs a generator."""

import numpy as np
import pytest

import npformer.functional as F
from npformer import UserError


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_the_share_of_dropped_numbers_and_the_mean_of_the_output(p):
    x = np.ones(40_000)
    y, dropout_mask = F.dropout(x, p, np.random.default_rng(0))
    deviation = np.sqrt(p * (1 - p) / x.size)
    assert abs((y == 0).mean() - p) < 4 * deviation
    assert abs(y.mean() - 1) < 4 * deviation / (1 - p)
    assert np.unique(dropout_mask).tolist() == [0, pytest.approx(1 / (1 - p))]
    np.testing.assert_array_equal(F.dropout_backward(5 * x, dropout_mask), 5 * y)


@pytest.mark.parametrize(
    ("p", "rng", "message"),
    [
        (0.5, None, r"dropout with p = 0\.5 needs a generator: give rng"),
        (1.5, np.random.default_rng(0), r"probability is 1\.5: it must be at least 0 and less than 1"),
        (1.0, np.random.default_rng(0), r"probability is 1\.0"),
        (-0.1, np.random.default_rng(0), r"probability is -0\.1"),
    ],
)
def test_impossible_dropout_is_refused(p, rng, message):
    with pytest.raises(UserError, match=message):
        F.dropout(np.ones(3), p, rng)
