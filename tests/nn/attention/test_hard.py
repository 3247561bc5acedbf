"""Hard attention as a layer, and the estimate of its gradient, compared with the sum over all samples."""

import math

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking.cases.hard import SmallAnswer
from npformer.errors import UserError
from npformer.nn.attention import GlobalAttention, HardAttention, MovingBaseline, Similarity
from npformer.nn.attention.hard import estimate, every_draw, expected_loss, with_and_without_baseline

rng = np.random.default_rng(0)
QUERIES, MEMORY = rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 5, 6))
WORDS = np.array([[True] * 5, [True] * 3 + [False] * 2])


def layer(make=HardAttention, **settings):
    return make(Similarity("general", 3, 6, rng=np.random.default_rng(1), dtype=np.float64), **settings)


def test_a_straight_through_layer():
    hard, soft = layer(straight_through=True), layer(GlobalAttention)
    context, cache = hard.forward(QUERIES, MEMORY, WORDS, train=True, rng=np.random.default_rng(0))
    dcontext = rng.standard_normal(context.shape)
    dqueries, _ = hard.backward(dcontext, cache)
    np.testing.assert_array_equal(context, cache.sample @ MEMORY)
    _, soft_cache = soft.forward(QUERIES, MEMORY, WORDS)
    np.testing.assert_array_equal(cache.weights, soft_cache.weights)
    expected, _ = soft.backward(dcontext, soft_cache)
    np.testing.assert_allclose(dqueries, expected, rtol=1e-12)
    np.testing.assert_allclose(hard.similarity.weight.grad, soft.similarity.weight.grad, rtol=1e-12)
    with pytest.raises(UserError, match="leave them out"):
        hard.backward(context, cache, dlog_prob=np.ones((2, 4)))


def test_positions_are_drawn_in_training_and_chosen_otherwise():
    hard, seeds = layer(), range(20)
    _, chosen = hard.forward(QUERIES, MEMORY, WORDS)
    np.testing.assert_array_equal(chosen.sample.argmax(-1), chosen.weights.argmax(-1))
    drawn = [hard.forward(QUERIES, MEMORY, WORDS, train=True, rng=np.random.default_rng(n))[1] for n in seeds]
    assert len({cache.sample.tobytes() for cache in drawn}) > 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layer().forward(QUERIES, MEMORY, train=True), "train=True needs a generator: give rng"),
        (lambda: layer().forward(QUERIES, MEMORY, WORDS[:, :4]), "make them equal"),
        (lambda: MovingBaseline(1.2), "decay is 1.2"),
    ],
)
def test_invalid_inputs_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


# The estimate: 2 queries read 3 places, so that all 9 samples can be computed.

MAKE = np.random.default_rng(7)
SMALL, READ = MAKE.standard_normal((1, 2, 3)), MAKE.standard_normal((1, 3, 3))
SMALL_ANSWER = SmallAnswer(MAKE)
ANSWER = SMALL_ANSWER.forward, SMALL_ANSWER.backward
SEEN = np.array([[[True] * 3, [True, False, True]]])
CASE = (SMALL, READ, ANSWER, SEEN)
ENTROPY = 0.3


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
    a = [F.softmax(SMALL[0, t][SEEN[0, t]])[0] for t in range(2)]
    places = [np.flatnonzero(SEEN[0, t]) for t in range(2)]
    loss = ENTROPY * sum(p * math.log(p) for row in a for p in row)
    for i, j in np.ndindex(3, 2):
        z = READ[0, [places[0][i], places[1][j]]]  # (2, 3)
        hidden = np.tanh(z[0] @ SMALL_ANSWER.weight[0] + z[1] @ SMALL_ANSWER.weight[1])
        loss -= a[0][i] * a[1][j] * math.log(F.softmax(hidden)[0][1])
    assert expected_loss(*CASE, entropy_weight=ENTROPY) == pytest.approx(loss, rel=1e-13)
    assert expected_loss(*CASE) == expected_loss(*CASE, entropy_weight=0.0)


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


def test_the_straight_through_estimate_computed_with_loops():
    """Each draw has the gradient of soft attention at the context of the draw."""
    draws, (f, f_backward) = every_draw(*CASE), ANSWER
    a, _ = F.softmax(np.where(SEEN, SMALL, -np.inf))
    expected = np.zeros_like(SMALL)
    for p, sample in zip(draws.probability, draws.sample, strict=True):
        log_likelihood, cache = f((sample @ READ)[None])
        dweights = f_backward(-np.ones_like(log_likelihood), cache)[0] @ READ.swapaxes(-1, -2)  # (1, T, S)
        expected += p * a * (dweights - (a * dweights).sum(-1, keepdims=True))
    found = estimate(*CASE, straight_through=True)
    np.testing.assert_allclose(found.dscores, expected, rtol=1e-12)
    np.testing.assert_allclose(found.dv, estimate(*CASE).dv, rtol=1e-12)


def test_the_two_baselines_are_the_mean_of_the_log_likelihood_and_0():
    draws = every_draw(*CASE)
    mean = sum(p * r for p, r in zip(draws.probability, draws.log_likelihood, strict=True))
    for found, baseline in zip(with_and_without_baseline(*CASE), (mean, 0.0), strict=True):
        assert found.variance == pytest.approx(estimate(*CASE, baseline=baseline).variance, rel=1e-12)
    weighted = with_and_without_baseline(*CASE, entropy_weight=ENTROPY, reward_weight=0.5)
    settings = {"entropy_weight": ENTROPY, "reward_weight": 0.5}
    for found, baseline in zip(weighted, (mean, 0.0), strict=True):
        expected = estimate(*CASE, baseline=baseline, **settings)
        np.testing.assert_allclose(found.dscores, expected.dscores, rtol=1e-12)


def test_the_variance_computed_with_loops():
    draws = every_draw(*CASE)
    a, _ = F.softmax(np.where(SEEN, SMALL, -np.inf))
    grads = [-r * (s - a) for r, s in zip(draws.log_likelihood, draws.sample, strict=True)]
    mean = sum(p * g for p, g in zip(draws.probability, grads, strict=True))
    variance = sum(p * ((g - mean) ** 2).sum() for p, g in zip(draws.probability, grads, strict=True))
    assert estimate(*CASE).variance == pytest.approx(variance, rel=1e-12)


def test_the_moving_baseline_of_the_paper():
    baseline = MovingBaseline()
    assert baseline.value == 0
    for k, rewards in enumerate(([-2.0, -4.0], [-1.0, -1.0])):
        baseline.update(np.array(rewards))
        assert baseline.value == pytest.approx([-0.3, 0.9 * -0.3 - 0.1][k], rel=1e-15)
