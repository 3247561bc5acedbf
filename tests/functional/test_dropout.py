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


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_middle_of_the_feed_forward_network_drops_the_activations(activation):
    x = np.linspace(-3, 3, 500)
    y, _ = F.activation_dropout(x, activation, 0.4, np.random.default_rng(1))
    active, _ = F.ACTIVATIONS[activation][0](x)
    expected, _ = F.dropout(active, 0.4, np.random.default_rng(1))
    np.testing.assert_allclose(y, expected, rtol=1e-15)
    assert not np.signbit(y[y == 0]).any() or activation != "relu"


def test_add_norm_drops_the_output_of_the_sublayer():
    x, h, gain = np.ones((2, 500)), np.linspace(-3, 3, 1000).reshape(2, 500), np.ones(500)
    y, cache = F.add_norm(x, h, gain, 0 * gain, p=0.4, rng=np.random.default_rng(1))
    dropped, dropout_mask = F.dropout(h, 0.4, np.random.default_rng(1))
    np.testing.assert_array_equal(cache.dropout_mask, dropout_mask)
    np.testing.assert_array_equal(y, F.layer_norm(x + dropped, gain, 0 * gain)[0])


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
