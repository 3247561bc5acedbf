"""The score-function gradient of hard attention, compared with the sum over all samples and with sampling."""

import math

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking.cases.hard import SmallAnswer
from npformer.nn.attention import MovingBaseline
from npformer.nn.attention.hard import estimate, every_draw, expected_loss, with_and_without_baseline

MAKE = np.random.default_rng(7)
SMALL, READ = MAKE.standard_normal((1, 2, 3)), MAKE.standard_normal((1, 3, 3))  # 2 queries, 3 places
SMALL_ANSWER = SmallAnswer(MAKE)
ANSWER = SMALL_ANSWER.forward, SMALL_ANSWER.backward
SEEN = np.array([[[True] * 3, [True, False, True]]])
CASE = (SMALL, READ, ANSWER, SEEN)
ENTROPY = 0.3


def softmax(row):
    return np.exp(row) / np.exp(row).sum()


def complex_step(f, x, h=1e-20):
    """Return the gradient of a number, entry by entry, exact to rounding."""
    grad = np.zeros_like(x)
    for where in np.ndindex(x.shape):
        step = np.zeros(x.shape, complex)
        step[where] = 1j * h
        grad[where] = f(x + step).imag / h
    return grad


@pytest.fixture(scope="module")
def exact():
    """Return the gradients (dscores, dv) of the expected loss over all samples."""
    settings = {"entropy_weight": ENTROPY}
    return (
        complex_step(lambda scores: expected_loss(scores, READ, ANSWER, SEEN, **settings), SMALL),
        complex_step(lambda v: expected_loss(SMALL, v, ANSWER, SEEN, **settings), READ),
    )


def test_the_expected_loss_computed_with_loops():
    """Compute -Σ_s p(s) log p(y | s) - λ_e H, where s is every pair of places that may be read."""
    a = [softmax(SMALL[0, t][SEEN[0, t]]) for t in range(2)]
    places = [np.flatnonzero(SEEN[0, t]) for t in range(2)]
    loss = ENTROPY * sum(p * math.log(p) for row in a for p in row)
    for i, j in np.ndindex(3, 2):
        z = READ[0, [places[0][i], places[1][j]]]  # (2, 3)
        hidden = np.tanh(z[0] @ SMALL_ANSWER.weight[0] + z[1] @ SMALL_ANSWER.weight[1])
        loss -= a[0][i] * a[1][j] * math.log(softmax(hidden)[1])
    assert expected_loss(*CASE, entropy_weight=ENTROPY) == pytest.approx(loss, rel=1e-13)


@pytest.mark.parametrize("baseline", [0.0, -1.3, 40.0])
def test_the_expected_estimate_is_the_gradient_for_every_baseline(exact, baseline):
    result = estimate(*CASE, baseline=baseline, entropy_weight=ENTROPY)
    for ours, expected in zip((result.dscores, result.dv), exact, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-13 * max(1, abs(baseline)))


def test_a_baseline_changes_the_variance_but_not_the_mean():
    with_one, without = with_and_without_baseline(*CASE, entropy_weight=ENTROPY)
    np.testing.assert_allclose(with_one.dscores, without.dscores, atol=1e-14)
    np.testing.assert_allclose(with_one.dv, without.dv, atol=1e-14)
    assert with_one.variance < 0.5 * without.variance


def test_the_variance_computed_with_loops():
    draws = every_draw(*CASE)
    a, _ = F.softmax(np.where(SEEN, SMALL, -np.inf))
    grads = [-r * (s - a) for r, s in zip(draws.log_likelihood, draws.sample, strict=True)]
    mean = sum(p * g for p, g in zip(draws.probability, grads, strict=True))
    variance = sum(p * ((g - mean) ** 2).sum() for p, g in zip(draws.probability, grads, strict=True))
    assert estimate(*CASE).variance == pytest.approx(variance, rel=1e-12)


def drawn(n, *, draws=1, seed=4, change=None, baseline=-1.0, **settings):
    """Return n independent estimates dscores (n, T, S) and dv (n, S, L), each a mean over `draws`.

    change(log_likelihood, cache, dlog_prob, dentropy) -> dscores plants a mistake.
    """
    scores, v = np.repeat(SMALL, n, 0), np.repeat(READ, n, 0)
    z, cache = F.hard_attend(scores, v, SEEN, rng=np.random.default_rng(seed), draws=draws)
    log_likelihood, answered = ANSWER[0](z)  # (draws, n)
    dz = ANSWER[1](-np.ones_like(log_likelihood) / draws, answered)
    b = baseline(log_likelihood) if callable(baseline) else baseline
    dlog_prob, dentropy = F.score_function(log_likelihood, b, entropy_weight=ENTROPY, **settings)
    # the gradient of each sentence, not the mean over the sentences
    dlog_prob, dentropy = n * dlog_prob, n * dentropy
    dscores, dv = F.hard_attend_backward(dz, cache, dlog_prob=dlog_prob, dentropy=dentropy)
    return (dscores if change is None else change(dz, cache, dlog_prob, dentropy)), dv


def standard_errors(estimates, expected):
    """Return the largest error of the mean of independent estimates, in standard errors."""
    error = estimates.std(0, ddof=1) / math.sqrt(len(estimates))
    off = np.abs(estimates.mean(0) - expected[0])
    return float((off[error > 0] / error[error > 0]).max())


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize("baseline", [0.0, -1.0])
def test_the_mean_of_many_samples_is_within_four_standard_errors(exact, draws, baseline):
    dscores, dv = drawn(40_000, draws=draws, baseline=baseline)
    assert standard_errors(dscores, exact[0]) < 4
    assert standard_errors(dv, exact[1]) < 4


def _scores(dlog_prob, dentropy, cache):
    return F.hard_attend_backward(
        np.zeros((*cache.sample.shape[:-1], 3)), cache, dlog_prob=dlog_prob, dentropy=dentropy
    )[0]


WRONG = {
    "wrong sign": {"change": lambda dz, c, dlog_prob, dentropy: _scores(-dlog_prob, dentropy, c)},
    "entropy's sign": {"change": lambda dz, c, dlog_prob, dentropy: _scores(dlog_prob, -dentropy, c)},
    "without the score function": {"change": lambda dz, c, dlog_prob, dentropy: _scores(None, dentropy, c)},
    "onehot without - a": {
        "change": lambda dz, c, dlog_prob, dentropy: (
            (dlog_prob[..., None] * c.sample).sum(0) + _scores(None, dentropy, c)
        )
    },
    "a baseline that has seen the draw": {"baseline": lambda r: 0.9 * -1.0 + 0.1 * r},
    "a reward that counts half": {"reward_weight": 0.5},
    "straight through": {
        "change": lambda dz, c, _, dentropy: (
            F.straight_through_backward(dz, c)[0] + _scores(None, dentropy, c)
        )
    },
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_estimate_exceeds_four_standard_errors(exact, wrong):
    """Without this, the test above would prove nothing."""
    dscores, _ = drawn(40_000, **wrong)
    assert standard_errors(dscores, exact[0]) > 5


def test_a_baseline_that_includes_the_sample_reduces_the_gradient_by_a_tenth():
    """The reward's part of each sample's gradient is multiplied by exactly .9."""
    fair, _ = drawn(50, baseline=-1.0)
    peeking, _ = drawn(50, baseline=lambda r: 0.9 * -1.0 + 0.1 * r)
    alone, _ = drawn(50, baseline=lambda r: r)  # the part of the entropy
    np.testing.assert_allclose(peeking - alone, 0.9 * (fair - alone), atol=1e-14)


def test_the_moving_baseline_is_used_before_its_update(exact):
    """The estimates are made one after the other: a baseline of earlier samples has no bias."""
    generator, baseline, grads = np.random.default_rng(5), MovingBaseline(), []
    for _ in range(6000):
        z, cache = F.hard_attend(SMALL, READ, SEEN, rng=generator, draws=1)
        log_likelihood, _ = ANSWER[0](z)
        dlog_prob, dentropy = F.score_function(log_likelihood, baseline.value, entropy_weight=ENTROPY)
        baseline.update(log_likelihood)
        grads.append(F.hard_attend_backward(z, cache, dlog_prob=dlog_prob, dentropy=dentropy)[0])
    assert standard_errors(np.concatenate(grads), exact[0]) < 4
    draws = every_draw(*CASE)
    assert baseline.value == pytest.approx((draws.probability * draws.log_likelihood).sum(), abs=0.5)


def test_the_axis_of_the_draws_may_be_left_out():
    """Without this axis there is one draw for each sentence."""
    log_likelihood = np.array([-1.0, -3.0])
    dlog_prob, dentropy = F.score_function(log_likelihood, -2.0, reward_weight=0.5, entropy_weight=0.3)
    assert dlog_prob.tolist() == [[-0.25], [0.25]]
    assert dentropy.tolist() == [[-0.15], [-0.15]]
    with_axis = F.score_function(log_likelihood[None], -2.0, reward_weight=0.5, entropy_weight=0.3)
    np.testing.assert_array_equal(with_axis[0][0], dlog_prob)
    np.testing.assert_array_equal(with_axis[1], dentropy)


def test_the_moving_baseline_of_the_paper():
    baseline = MovingBaseline()
    assert baseline.value == 0
    for k, rewards in enumerate(([-2.0, -4.0], [-1.0, -1.0])):
        baseline.update(np.array(rewards))
        assert baseline.value == pytest.approx([-0.3, 0.9 * -0.3 - 0.1][k], rel=1e-15)


def test_straight_through_is_biased(exact):
    """The bias is exact, over all samples; it vanishes if the answer is linear in the value that was read."""
    result = estimate(*CASE, straight_through=True)
    true = complex_step(lambda scores: expected_loss(scores, READ, ANSWER, SEEN), SMALL)
    assert np.linalg.norm(result.dscores - true) > 0.1 * np.linalg.norm(true)
    line = MAKE.standard_normal((2, 3))
    linear = lambda z: ((z * line).sum((-1, -2)), None), lambda d, _: d[..., None, None] * line
    result = estimate(SMALL, READ, linear, SEEN, straight_through=True)
    true = complex_step(lambda scores: expected_loss(scores, READ, linear, SEEN), SMALL)
    np.testing.assert_allclose(result.dscores, true, atol=1e-13)
