"""Batch norm as a layer: its running statistics, and the reason why Transformers use layer norm."""

import numpy as np

from npformer.checking.leaks import movement
from npformer.nn import BatchNorm

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 4, 3))
GAIN, BIAS = rng.standard_normal(3), rng.standard_normal(3)
WORDS = np.array([[True, True, True, True], [True, True, False, False]])


def make_layer(**settings):
    """Return a float64 layer with gain and bias different from the initial 1 and 0."""
    layer = BatchNorm(3, dtype=np.float64, **settings)
    layer.gain.value[:], layer.bias.value[:] = GAIN, BIAS
    return layer


# Independence of a token's output from the other sentences of the batch.


def test_with_running_statistics_tokens_are_independent():
    norm = make_layer()
    for _ in range(3):
        norm.update(norm.forward(X, train=True)[1])
    moved = movement(norm.forward, X[0])
    assert (moved[~np.eye(4, dtype=bool)] == 0).all()
    assert (moved.diagonal() > 0.1).all()


# The layer and its running statistics


def test_only_update_changes_the_running_statistics():
    norm = make_layer(momentum=0.25)
    _, cache = norm.forward(X, mask=WORDS, train=True)
    assert not norm.running_mean.any()
    assert (norm.running_variance == 1).all()
    norm.update(cache)
    words = X[WORDS]  # (6, 3)
    np.testing.assert_allclose(norm.running_mean, 0.25 * words.mean(0), rtol=1e-13)
    np.testing.assert_allclose(norm.running_variance, 0.75 + 0.25 * words.var(0, ddof=1), rtol=1e-13)
    norm.update(cache)  # the same batch again
    np.testing.assert_allclose(norm.running_mean, (0.75 * 0.25 + 0.25) * words.mean(0), rtol=1e-13)


def test_update_ignores_caches_without_statistics():
    norm = make_layer()
    norm.update(norm.forward(X)[1])
    norm.update(norm.forward(X, mask=np.zeros((2, 4), bool), train=True)[1])
    assert not norm.running_mean.any()
    assert (norm.running_variance == 1).all()
    norm.update(norm.forward(X[:1, :1], train=True)[1])  # one token has a mean but no variance
    np.testing.assert_allclose(norm.running_mean, 0.1 * X[0, 0])
    assert np.isfinite(norm.running_variance).all()
    before = norm.running_variance.copy()
    norm.update(norm.forward(X[:1, :2], train=True)[1])
    np.testing.assert_allclose(norm.running_variance, 0.9 * before + 0.1 * X[0, :2].var(0, ddof=1))


def test_float32_stays_float32_and_astype_converts_the_running_statistics():
    norm = BatchNorm(3)
    x = X.astype(np.float32)
    for train in (True, False):
        y, cache = norm.forward(x, mask=WORDS, train=train)
        assert y.dtype == norm.backward(y, cache).dtype == np.float32
        norm.update(cache)
    assert norm.running_mean.dtype == norm.running_variance.dtype == np.float32
    assert norm.astype(np.float64).running_mean.dtype == np.float64
