"""Hard attention: the value that is read, its probability, and the gradients that replace its derivative."""

import numpy as np
import pytest

import npformer.functional as F
from npformer.errors import UserError
from npformer.nn.attention.hard import every_sample

rng = np.random.default_rng(0)
SCORES, V = rng.standard_normal((2, 4, 5)), rng.standard_normal((2, 5, 3))
MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])[:, None]  # (2, 1, 5)
DRAWN = {"rng": np.random.default_rng(1), "draws": 6}


@pytest.fixture(scope="module")
def six_draws():
    return F.hard_attend(SCORES, V, MASK, **DRAWN)


def test_without_a_generator_it_is_the_most_probable_value():
    z, _ = F.hard_attend(SCORES, V, MASK)
    best = np.where(MASK, SCORES, -np.inf).argmax(-1)
    np.testing.assert_array_equal(z, np.take_along_axis(V, best[..., None], 1))
    tie, _ = F.hard_attend(np.zeros((1, 5)), V[0])
    np.testing.assert_array_equal(tie[0], V[0, 0])


def test_the_mean_of_all_draws_is_soft_attention():
    """E[z] = Σ_s a_s v_s, the sum over all samples weighted by their probability."""
    scores, v = SCORES[:1, :2, :3], V[:1, :3]
    sample = every_sample(2, 3)
    assert sample.shape == (9, 1, 2, 3)
    z, cache = F.hard_attend(scores, v, sample=sample)
    probability = np.exp(cache.log_prob.sum(-1))  # (9, 1)
    assert probability.sum() == pytest.approx(1, rel=1e-14)
    soft, _ = F.attend(scores, v)
    np.testing.assert_allclose((probability[..., None, None] * z).sum(0), soft, rtol=1e-13)


def test_a_fully_masked_query_reads_zeros():
    mask = MASK & (np.arange(4)[:, None] != 1)
    for settings in ({}, {"rng": np.random.default_rng(0), "draws": 3}):
        z, cache = F.hard_attend(SCORES, V, mask, **settings)
        assert not z[..., 1, :].any()
        assert (cache.log_prob[..., 1] == 0).all()
        assert (cache.entropy[..., 1] == 0).all()
        ones = {"dlog_prob": np.ones(cache.log_prob.shape), "dentropy": np.ones(cache.entropy.shape)}
        dscores, dv = F.hard_attend_backward(np.ones_like(z), cache, **ones)
        assert not dscores[:, 1].any()
        assert np.isfinite(dscores).all()
        assert not dv[1, 3:].any()


def test_the_gradients_of_log_probability_and_entropy_are_added(six_draws):
    z, cache = six_draws
    dlog_prob, dentropy = rng.standard_normal((6, 2, 4)), rng.standard_normal((2, 4))
    dscores, _ = F.hard_attend_backward(0 * z, cache, dlog_prob=dlog_prob, dentropy=dentropy)
    of_log_prob = F.log_probability_backward(dlog_prob, F.log_probability(SCORES, cache.sample, MASK)[1])
    of_entropy = F.entropy_backward(dentropy, F.entropy(SCORES, MASK)[1])
    np.testing.assert_allclose(dscores, of_log_prob + of_entropy, rtol=1e-12, atol=1e-14)


def test_straight_through_has_the_score_gradient_of_soft_attention(six_draws):
    z, cache = six_draws
    dz = rng.standard_normal(z.shape)
    dscores, dv = F.straight_through_backward(dz, cache)
    expected, _ = F.attend_backward(dz.sum(0), F.attend(SCORES, V, MASK)[1])
    np.testing.assert_allclose(dscores, expected, rtol=1e-12)
    np.testing.assert_array_equal(dv, F.hard_attend_backward(dz, cache)[1])


def test_the_score_function_with_and_without_an_axis_of_draws():
    settings = {"reward_weight": 0.5, "entropy_weight": 0.3}
    dlog_prob, dentropy = F.score_function(np.array([-1.0, -3.0]), -2.0, **settings)
    assert dlog_prob.tolist() == [[-0.25], [0.25]]
    assert dentropy.tolist() == [[-0.15], [-0.15]]
    with_axis = F.score_function(np.array([[-1.0, -3.0]] * 2, np.float32), -2.0, **settings)
    assert with_axis[0].tolist() == [[[-0.125], [0.125]]] * 2
    np.testing.assert_array_equal(with_axis[1], dentropy.astype(np.float32))
    assert with_axis[0].dtype == with_axis[1].dtype == np.float32
    assert F.score_function(np.array([-1.0]))[0].tolist() == [[1]]
    assert not F.score_function(np.array([-1.0]))[1].any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F.hard_attend(SCORES, V, draws=3), "3 draws need a generator"),
        (lambda: F.hard_attend(SCORES, V, MASK.astype(int)), "make it bool"),
        (lambda: F.entropy(SCORES, MASK[..., :4]), "must broadcast"),
    ],
)
def test_invalid_inputs_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()
