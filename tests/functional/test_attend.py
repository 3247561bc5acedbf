"""Attention with given scores, and the window around a predicted position: values by loops, limits, masks."""

import math

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking import gradcheck
from npformer.checking.cases.luong import attend_cases
from npformer.errors import UserError
from npformer.functional.masks import Masking

rng = np.random.default_rng(0)
SCORES, V = rng.standard_normal((2, 4, 5)), rng.standard_normal((2, 5, 3))
MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])[:, None]  # (2, 1, 5)


@pytest.mark.parametrize("case", list(attend_cases()), ids=lambda case: case.name)
def test_gradients_are_exact(case):
    report = case.check()
    assert report.ok, str(report)


def test_attend_computed_with_loops():
    y, cache = F.attend(SCORES, V, MASK)
    for b, t in np.ndindex(2, 4):
        unmasked = [s for s in range(5) if MASK[b, 0, s]]
        total = sum(math.exp(SCORES[b, t, s]) for s in unmasked)
        for s in range(5):
            weight = math.exp(SCORES[b, t, s]) / total if s in unmasked else 0
            assert cache.weights[b, t, s] == pytest.approx(weight, rel=1e-13)
        for j in range(3):
            expected = sum(math.exp(SCORES[b, t, s]) / total * V[b, s, j] for s in unmasked)
            assert y[b, t, j] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("masking", [F.EXACT, Masking(-1e10), Masking(-1e9, how="add", query="before")])
def test_attention_is_attend_with_scaled_dot_products(masking):
    """They agree to the bit, with masks, dropout and gradients."""
    q, k = rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 5, 6))
    settings = {"query_mask": np.arange(4)[:, None] != 2, "masking": masking, "p": 0.4}
    y, cache = F.attention(q, k, V, MASK, rng=np.random.default_rng(1), **settings)
    scores, compared = F.dot_similarity(q, k)
    ours, attended = F.attend(scores * cache.scale, V, MASK, rng=np.random.default_rng(1), **settings)
    np.testing.assert_array_equal(ours, y)
    dy = rng.standard_normal(y.shape)
    dq, dk, dv = F.attention_backward(dy, cache)
    dscores, our_dv = F.attend_backward(dy, attended)
    our_dq, our_dk = F.dot_similarity_backward(dscores * cache.scale, compared)
    for one, other in ((our_dq, dq), (our_dk, dk), (our_dv, dv)):
        np.testing.assert_array_equal(one, other)


def test_a_fully_masked_query_has_output_0():
    mask = MASK & (np.arange(4)[:, None] != 1)
    y, cache = F.attend(SCORES, V, mask)
    assert not y[:, 1].any()
    dscores, dv = F.attend_backward(np.ones_like(y), cache)
    assert not dscores[:, 1].any()
    assert np.isfinite(dscores).all()
    assert np.isfinite(dv).all()
    assert not dv[1, 3:].any()  # no query reads padding


def test_a_mask_of_another_dtype_or_shape_is_refused():
    with pytest.raises(UserError, match="make it bool"):
        F.attend(SCORES, V, MASK.astype(int))
    with pytest.raises(UserError, match="must broadcast"):
        F.attend(SCORES, V, MASK[..., :4])


# The predicted position.


def test_predicted_position_computed_with_loops():
    h, weight, v = rng.standard_normal((2, 4, 3)), rng.standard_normal((3, 6)), rng.standard_normal(6)
    lengths = np.array([[5], [3]])
    p, cache = F.predict_position(h, weight, v, lengths)
    for b, t in np.ndindex(2, 4):
        logit = sum(v[j] * math.tanh(sum(h[b, t, i] * weight[i, j] for i in range(3))) for j in range(6))
        assert p[b, t] == pytest.approx(lengths[b, 0] / (1 + math.exp(-logit)), rel=1e-13)
    np.testing.assert_array_equal(cache.p, p)
    assert ((p > 0) & (p < lengths)).all()


def test_a_state_of_zeros_predicts_the_middle():
    p, _ = F.predict_position(np.zeros((2, 1, 3)), np.ones((3, 6)), np.ones(6), np.array([[8], [3]]))
    assert p.tolist() == [[4], [1.5]]


# The Gaussian.


def test_the_gaussian_of_the_paper():
    """With sigma = D / 2: exp(-1/2) = .6065 at half the window, exp(-2) = .1353 at its edge."""
    reach, ones = 4, np.ones((1, 9))
    y, _ = F.gaussian_window(ones, np.array([4.0]), reach / 2)
    assert y[0, 4] == 1
    assert y[0, [2, 6]].round(4).tolist() == [0.6065] * 2
    assert y[0, [0, 8]].round(4).tolist() == [0.1353] * 2


def test_the_gaussian_computed_with_loops():
    weights, p = rng.random((2, 4, 5)), rng.uniform(0, 5, (2, 4))
    y, _ = F.gaussian_window(weights, p, 1.5)
    for b, t, s in np.ndindex(2, 4, 5):
        assert y[b, t, s] == pytest.approx(
            weights[b, t, s] * math.exp(-((s - p[b, t]) ** 2) / 4.5), rel=1e-13
        )


def test_the_slope_is_a_times_the_distance_over_the_variance():
    weights, p, sigma = rng.random((2, 4, 5)), rng.uniform(0, 5, (2, 4)), 1.5
    y, cache = F.gaussian_window(weights, p, sigma)
    for s in range(5):
        dy = np.zeros_like(y)
        dy[..., s] = 1
        _, dp = F.gaussian_window_backward(dy, cache)
        np.testing.assert_allclose(dp, y[..., s] * (s - p) / sigma**2, rtol=1e-13)


def test_a_very_wide_gaussian_changes_nothing():
    weights = rng.random((2, 4, 5))
    y, cache = F.gaussian_window(weights, np.full((2, 4), 2.3), 1e9)
    np.testing.assert_allclose(y, weights, rtol=1e-14)
    dweights, dp = F.gaussian_window_backward(np.ones_like(y), cache)
    np.testing.assert_allclose(dweights, 1, rtol=1e-14)
    assert np.abs(dp).max() < 1e-17


def test_the_window_includes_exactly_its_edges():
    near = F.inside_window(np.array([[0.0, 2.5], [4.0, 9.0]]), 6, 1.5)
    assert [[np.flatnonzero(row).tolist() for row in rows] for rows in near] == [
        [[0, 1], [1, 2, 3, 4]],
        [[3, 4, 5], []],
    ]


# Properties of all three, alone and together.

ALL = {
    "attend": lambda d: [F.attend, F.attend_backward, SCORES.astype(d), V.astype(d), MASK],
    "gaussian_window": lambda d: [
        F.gaussian_window,
        F.gaussian_window_backward,
        SCORES.astype(d),
        SCORES[..., 0].astype(d),
        1.5,
    ],
    "predict_position": lambda d: [
        F.predict_position,
        F.predict_position_backward,
        V.astype(d),
        V[0, :3].astype(d),
        V[0, 0].astype(d),
        np.array([[5], [3]]),
    ],
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_the_dtype_is_kept(name, dtype):
    f, f_backward, *arrays = ALL[name](dtype)
    y, cache = f(*arrays)
    assert {a.dtype for a in (y, *f_backward(y, cache))} == {np.dtype(dtype)}
    real = np.dtype(dtype).type(0).real.dtype  # the factors are real whatever the dtype of the others
    kinds = {a.dtype for a in cache if hasattr(a, "dtype") and a.dtype.kind in "fc"}
    assert kinds <= {np.dtype(dtype), real}


def test_position_window_and_softmax_in_a_chain():
    """Check the pairs in the order in which local-p uses them."""

    def forward(h, scores):
        p, first = F.predict_position(h, V[0], V[0, 0], np.array([[5], [3]]))
        weights, second = F.softmax(scores)
        y, third = F.gaussian_window(weights, p, 2.0)
        return y, (first, second, third)

    def backward(dy, cache):
        dweights, dp = F.gaussian_window_backward(dy, cache[2])
        return F.predict_position_backward(dp, cache[0])[0], F.softmax_backward(dweights, cache[1])

    report = gradcheck(
        (forward, backward), rng.standard_normal((2, 4, 5)), SCORES, hessian=True, tolerance=1e-12
    )
    assert report.ok, str(report)
