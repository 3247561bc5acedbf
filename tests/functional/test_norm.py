"""Layer norm, RMS norm and batch norm: padding, eps, and the shapes that are refused."""

import numpy as np
import pytest

import npformer.functional as F
from npformer.errors import UserError
from npformer.functional.batch_norm import Statistics

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 4, 3))
GAIN, BIAS = rng.standard_normal((2, 3))
WORDS = np.array([[True, True, True, True], [True, True, False, False]])


def test_eps_is_added_to_the_variance():
    ones, two = np.ones(2), np.array([[1.0, -1.0]])
    assert F.layer_norm(two, ones, 0 * ones, 3.0)[0].tolist() == [[0.5, -0.5]]
    assert F.rms_norm(two, ones, 3.0)[0].tolist() == [[0.5, -0.5]]
    assert F.add_norm(two, 0 * two, ones, 0 * ones, 3.0)[0].tolist() == [[0.5, -0.5]]
    assert F.batch_norm(two.T, ones[:1], 0 * ones[:1], 3.0)[0].tolist() == [[0.5], [-0.5]]


def test_the_statistics_of_batch_norm_are_those_of_the_real_tokens():
    """Padding is normalized by them as well, and gets none of their gradients."""
    y, cache = F.batch_norm(X, GAIN, BIAS, mask=WORDS)
    mean, variance = X[WORDS].mean(0), X[WORDS].var(0)
    np.testing.assert_allclose(cache.statistics.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(cache.statistics.variance, variance, rtol=1e-13)
    np.testing.assert_allclose(y, GAIN * (X - mean) / np.sqrt(variance + 1e-5) + BIAS, rtol=1e-12)
    given, _ = F.batch_norm(X, GAIN, BIAS, statistics=Statistics(mean, variance))
    np.testing.assert_allclose(given, y, rtol=1e-12)
    dx, _, _ = F.batch_norm_backward(WORDS[..., None] * rng.standard_normal(y.shape), cache)
    assert not dx[~WORDS].any()


def test_batch_norm_depends_on_the_other_sentences_and_layer_norm_does_not():
    a, b, c = rng.standard_normal((3, 4, 3))
    for norm, depends in ((F.batch_norm, True), (F.layer_norm, False)):
        one, other, alone = (norm(np.stack(batch), GAIN, BIAS)[0][0] for batch in ([a, b], [a, c], [a]))
        assert (np.abs(one - other).max() > 0.1) == (np.abs(one - alone).max() > 0.1) == depends
        assert (one == other).all() != depends


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((2, 4)), "mask has dtype float64: make it bool, where True marks a token"),
        ([[True]], "mask has dtype list: make it bool"),
        (np.ones((4, 2), bool), r"mask has shape \(4, 2\) and the tokens \(2, 4\): make them equal"),
    ],
)
def test_a_mask_that_does_not_mark_tokens_is_refused(mask, message):
    with pytest.raises(UserError, match=message):
        F.batch_norm(X, GAIN, BIAS, mask=mask)


def test_a_residual_connection_of_two_shapes_is_refused():
    with pytest.raises(UserError, match=r"adds x of shape \(2, 4, 3\) and .* output of shape \(1, 4, 3\)"):
        F.add_norm(X, X[:1], GAIN, BIAS)
