"""Batch norm: against loops, with padding, in both modes; and the reason why Transformers use layer norm."""

import numpy as np
import pytest

import npformer.functional as F
from npformer.backend import is_cupy, to_backend, to_numpy
from npformer.checking.leaks import assert_no_leak, movement
from npformer.errors import UserError
from npformer.nn import BatchNorm, LayerNorm

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 4, 3))
GAIN, BIAS = rng.standard_normal(3), rng.standard_normal(3)
WORDS = np.array([[True, True, True, True], [True, True, False, False]])


def make_layer(**settings):
    """Return a float64 layer with gain and bias different from the initial 1 and 0."""
    layer = BatchNorm(3, dtype=np.float64, **settings)
    layer.gain.value[:], layer.bias.value[:] = GAIN, BIAS
    return layer


@pytest.mark.parametrize("mask", [None, WORDS])
def test_batch_norm_computed_with_loops(mask):
    y, _ = F.batch_norm(X, GAIN, BIAS, 1e-3, mask=mask)
    places = [(b, t) for b in range(2) for t in range(4) if mask is None or mask[b, t]]
    for d in range(3):
        numbers = [X[b, t, d] for b, t in places]
        mean = sum(numbers) / len(numbers)
        variance = sum((number - mean) ** 2 for number in numbers) / len(numbers)
        for b in range(2):
            for t in range(4):  # padding is normalized as well, by the statistics of the real tokens
                expected = GAIN[d] * (X[b, t, d] - mean) / (variance + 1e-3) ** 0.5 + BIAS[d]
                assert y[b, t, d] == pytest.approx(expected, rel=1e-13)


def test_real_tokens_have_mean_0_and_variance_1():
    y, _ = F.batch_norm(X, np.ones(3), np.zeros(3), 0.0, mask=WORDS)
    np.testing.assert_allclose(y[WORDS].mean(0), 0, atol=1e-15)
    np.testing.assert_allclose((y[WORDS] ** 2).mean(0), 1, rtol=1e-14)


def test_padding_changes_no_real_token_and_gets_none_of_their_gradients():
    other = np.where(WORDS[..., None], X, 1e3)
    y, cache = F.batch_norm(X, GAIN, BIAS, mask=WORDS)
    moved, _ = F.batch_norm(other, GAIN, BIAS, mask=WORDS)
    np.testing.assert_array_equal(y[WORDS], moved[WORDS])
    dy = WORDS[..., None] * rng.standard_normal(y.shape)
    dx, _, _ = F.batch_norm_backward(dy, cache)
    assert not dx[~WORDS].any()


def test_shifting_or_scaling_the_whole_batch_changes_nothing():
    y, _ = F.batch_norm(X, GAIN, BIAS, 0.0)
    moved, _ = F.batch_norm(2 * X - 5, GAIN, BIAS, 0.0)
    np.testing.assert_allclose(moved, y, rtol=1e-12)


def test_a_single_token_is_its_own_mean_and_padding_only_is_finite():
    y, _ = F.batch_norm(X[:1, :1], GAIN, BIAS)
    np.testing.assert_array_equal(y, BIAS[None, None])
    y, cache = F.batch_norm(X, GAIN, BIAS, mask=np.zeros((2, 4), bool))
    assert np.isfinite(y).all()
    assert all(np.isfinite(grad).all() for grad in F.batch_norm_backward(np.ones_like(y), cache))


# Independence of a token's output from the other sentences of the batch.


def in_a_batch(norm, *sentences):
    """Return the output of a norm for the first of these sentences."""
    return norm(np.stack(sentences))[0][0]


def test_batch_norm_depends_on_the_other_sentences_and_layer_norm_does_not():
    a, b, c = rng.standard_normal((3, 4, 3))
    by_batch, by_word = (lambda x: F.batch_norm(x, GAIN, BIAS)), (lambda x: F.layer_norm(x, GAIN, BIAS))
    assert np.abs(in_a_batch(by_batch, a, b) - in_a_batch(by_batch, a, c)).max() > 0.1
    assert np.abs(in_a_batch(by_batch, a, b) - in_a_batch(by_batch, a)).max() > 0.1
    np.testing.assert_array_equal(in_a_batch(by_word, a, b), in_a_batch(by_word, a, c))
    np.testing.assert_array_equal(in_a_batch(by_word, a, b), in_a_batch(by_word, a))


def test_batch_norm_leaks_later_tokens_to_earlier_ones():
    """No attention mask can prevent this: in a decoder the answer would leak through the norm."""
    norm = LayerNorm(3, dtype=np.float64)
    assert_no_leak(norm.forward, X[0])
    with pytest.raises(AssertionError, match="output 0 moves when token 1 changes"):
        assert_no_leak(lambda x: make_layer().forward(x, train=True), X[0])


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


def test_update_ignores_caches_without_statistics():
    norm = make_layer()
    norm.update(norm.forward(X)[1])
    norm.update(norm.forward(X, mask=np.zeros((2, 4), bool), train=True)[1])
    assert not norm.running_mean.any()
    assert (norm.running_variance == 1).all()
    norm.update(norm.forward(X[:1, :1], train=True)[1])  # one token has a mean but no variance
    np.testing.assert_allclose(norm.running_mean, 0.1 * X[0, 0])
    assert np.isfinite(norm.running_variance).all()


def test_the_running_statistics_converge_to_those_of_all_batches():
    norm = BatchNorm(3, dtype=np.float64, momentum=0.02)
    for _ in range(600):
        norm.update(norm.forward(5 + 2 * rng.standard_normal((40, 3)), train=True)[1])
    np.testing.assert_allclose(norm.running_mean, 5, atol=0.15)
    np.testing.assert_allclose(norm.running_variance, 4, atol=0.3)


def test_in_evaluation_mode_it_is_a_linear_map():
    norm = make_layer()
    norm.update(norm.forward(X, train=True)[1])
    a, b = rng.standard_normal((2, 5, 3))
    zero = norm.forward(np.zeros((5, 3)))[0]
    difference = norm.forward(a + b)[0] - zero
    np.testing.assert_allclose(difference, norm.forward(a)[0] + norm.forward(b)[0] - 2 * zero, rtol=1e-12)


def test_float32_stays_float32_and_astype_converts_the_running_statistics():
    norm = BatchNorm(3)
    x = X.astype(np.float32)
    for train in (True, False):
        y, cache = norm.forward(x, mask=WORDS, train=train)
        assert y.dtype == norm.backward(y, cache).dtype == np.float32
        norm.update(cache)
    assert norm.running_mean.dtype == norm.running_variance.dtype == np.float32
    assert norm.astype(np.float64).running_mean.dtype == np.float64


def test_it_computes_the_same_on_the_device(device):
    here, there = make_layer(), make_layer().to("cupy")
    dy = rng.standard_normal(X.shape)
    mask = to_backend(WORDS, "cupy")
    for train in (True, False):
        y, cache = here.forward(X, mask=WORDS, train=train)
        device_y, device_cache = there.forward(to_backend(X, "cupy"), mask=mask, train=train)
        assert is_cupy(device_y)
        np.testing.assert_allclose(to_numpy(device_y), y, rtol=1e-12)
        dx, device_dx = here.backward(dy, cache), there.backward(to_backend(dy, "cupy"), device_cache)
        np.testing.assert_allclose(to_numpy(device_dx), dx, rtol=1e-12, atol=1e-14)
        here.update(cache)
        there.update(device_cache)
        np.testing.assert_allclose(to_numpy(there.running_variance), here.running_variance, rtol=1e-12)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((2, 4)), "mask has dtype float64: make it bool"),
        (np.ones((4, 2), bool), r"mask has shape \(4, 2\) and the tokens \(2, 4\)"),
    ],
)
def test_a_mask_of_the_wrong_shape_is_refused(mask, message):
    with pytest.raises(UserError, match=message):
        make_layer().forward(X, mask=mask, train=True)
