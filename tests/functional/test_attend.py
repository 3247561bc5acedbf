"""Attention with given scores, and the window around a predicted position. test_pairs.py has the formulas."""

import numpy as np
import pytest

import npformer.functional as F
from npformer.functional import Masking

rng = np.random.default_rng(0)
SCORES, V = rng.standard_normal((2, 4, 5)), rng.standard_normal((2, 5, 3))
MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])[:, None]  # (2, 1, 5)


def test_attention_is_attend_with_scaled_dot_products():
    """They agree to the bit, with masks, dropout and gradients."""
    q, k = rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 5, 6))
    mask, p = MASK & (np.arange(4)[:, None] != 2), 0.4
    y, cache = F.attention(q, k, V, mask, p=p, rng=np.random.default_rng(1))
    scores, compared = F.dot_similarity(q, k)
    np.testing.assert_array_equal(cache.scores, scores * cache.scale)
    ours, attended = F.attend(scores * cache.scale, V, mask, p=p, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(ours, y)
    np.testing.assert_array_equal(attended.weights, cache.weights)
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


@pytest.mark.parametrize("fill", [-1e10, -1e9])
@pytest.mark.parametrize("how", ["replace", "add"])
def test_the_masks_of_tutorials_agree_where_each_query_has_a_key(fill, how):
    """Outputs, weights and gradients agree to the bit with the exact mask of keys and of queries."""
    q, k = rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 5, 6))
    rows, dy = np.arange(4)[:, None] != 2, rng.standard_normal((2, 4, 3))
    y, cache = F.attention(q, k, V, MASK & rows, p=0.4, rng=np.random.default_rng(1))
    settings = {"query_mask": rows, "masking": Masking(fill, how), "p": 0.4, "rng": np.random.default_rng(1)}
    ours, own = F.tutorial_attention(q, k, V, MASK, **settings)
    np.testing.assert_array_equal(ours, y)
    for name in ("q", "k", "v", "scores", "weights"):
        np.testing.assert_array_equal(getattr(own, name), getattr(cache, name))
    grads = F.attention_backward(dy, cache), F.tutorial_attention_backward(dy, own)
    for one, other in zip(*grads, strict=True):
        np.testing.assert_array_equal(other, one)


def test_the_gaussian_of_the_paper():
    """With sigma = D / 2: exp(-1/2) = .6065 at half the window, exp(-2) = .1353 at its edge."""
    reach, ones = 4, np.ones((1, 9))
    y, _ = F.gaussian_window(ones, np.array([4.0]), reach / 2)
    assert y[0, 4] == 1
    assert y[0, [2, 6]].round(4).tolist() == [0.6065] * 2
    assert y[0, [0, 8]].round(4).tolist() == [0.1353] * 2


def test_the_predicted_position_lies_between_0_and_the_length():
    lengths = np.array([[5], [3]])
    p, cache = F.predict_position(SCORES, rng.standard_normal((5, 6)), 9 * rng.standard_normal(6), lengths)
    np.testing.assert_array_equal(cache.p, p)
    assert ((p > 0) & (p < lengths)).all()
