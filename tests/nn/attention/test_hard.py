"""Hard attention: the sample, its gradients and the layer.

test_hard_estimates.py checks that its gradient is correct on average.
"""

import itertools
import math

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking.cases.hard import hard_cases
from npformer.errors import UserError
from npformer.nn.attention import GlobalAttention, HardAttention, MovingBaseline, Similarity
from npformer.nn.attention.hard import every_sample

rng = np.random.default_rng(0)
SCORES, V = rng.standard_normal((2, 4, 5)), rng.standard_normal((2, 5, 3))
MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])[:, None]  # (2, 1, 5)


def softmax_row(row):
    total = sum(math.exp(x) for x in row)
    return [math.exp(x) / total for x in row]


@pytest.mark.parametrize("case", list(hard_cases()), ids=lambda case: case.name)
def test_gradients_are_exact(case):
    report = case.check()
    assert report.ok, str(report)
    assert all(row.error < 1e-13 for row in report.rows)


# The sample.


def test_each_query_reads_the_sampled_value():
    z, cache = F.hard_attend(SCORES, V, MASK, rng=np.random.default_rng(1), draws=6)
    assert z.shape == (6, 2, 4, 3)
    assert (cache.sample.sum(-1) == 1).all()
    for n, b, t in np.ndindex(6, 2, 4):
        s = int(cache.sample[n, b, t].argmax())
        assert MASK[b, 0, s]
        np.testing.assert_array_equal(z[n, b, t], V[b, s])
        unmasked = SCORES[b, t][MASK[b, 0]]
        assert cache.log_prob[n, b, t] == pytest.approx(math.log(softmax_row(unmasked)[s]), rel=1e-12)
        entropy = -sum(p * math.log(p) for p in softmax_row(unmasked))
        assert cache.entropy[b, t] == pytest.approx(entropy, rel=1e-12)


def test_without_a_generator_it_is_the_most_probable_value():
    z, _ = F.hard_attend(SCORES, V, MASK)
    for b, t in np.ndindex(2, 4):
        best = np.where(MASK[b, 0], SCORES[b, t], -np.inf).argmax()
        np.testing.assert_array_equal(z[b, t], V[b, best])
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_frequency_of_samples_is_their_probability(dtype):
    """The error is at most four standard errors, and a weight of 0 is never drawn."""
    weights, _ = F.softmax(np.array([[0.0, 1.0, -np.inf, 2.0, -1.0], [-np.inf, 0, 0, 0, -np.inf]], dtype))
    n = 40_000
    share = F.one_hot_sample(weights, np.random.default_rng(2), n).mean(0)
    error = np.sqrt(weights * (1 - weights) / n)
    assert (np.abs(share - weights) <= 4 * error).all()
    assert (share[weights == 0] == 0).all()


@pytest.mark.parametrize("point", [0, 1 - 2.0**-24])
def test_the_extreme_random_numbers_select_an_allowed_key(point):
    class End:
        def random(self, shape, dtype):
            return np.full(shape, point, dtype)

    for dtype, row in itertools.product((np.float32, np.float64), np.random.default_rng(3).random((200, 7))):
        weights = np.concatenate([[0, 0], row / row.sum(), [0, 0]]).astype(dtype)
        sample = F.one_hot_sample(weights, End())
        assert sample.sum() == 1
        assert sample.argmax() == (2 if point == 0 else 8)


def test_a_fully_masked_query_reads_zeros():
    mask = MASK & (np.arange(4)[:, None] != 1)
    for settings in ({}, {"rng": np.random.default_rng(0), "draws": 3}):
        z, cache = F.hard_attend(SCORES, V, mask, **settings)
        assert not z[..., 1, :].any()
        assert (cache.log_prob[..., 1] == 0).all()
        assert (cache.entropy[..., 1] == 0).all()
        ones = np.ones(cache.log_prob.shape)
        dscores, dv = F.hard_attend_backward(
            np.ones_like(z), cache, dlog_prob=ones, dentropy=np.ones(cache.entropy.shape)
        )
        assert not dscores[:, 1].any()
        assert np.isfinite(dscores).all()
        assert not dv[1, 3:].any()


def test_entropy_is_0_of_a_certain_and_log_s_of_a_uniform_distribution():
    h, _ = F.entropy(np.array([[0.0, 0, 0, 0], [0, -1e4, -1e4, -1e4]]))
    assert h == pytest.approx([math.log(4), 0], abs=1e-15)


# The gradients.


def test_the_value_that_was_read_gives_the_scores_no_gradient():
    z, cache = F.hard_attend(SCORES, V, MASK, rng=np.random.default_rng(1), draws=6)
    dz = rng.standard_normal(z.shape)
    dscores, dv = F.hard_attend_backward(dz, cache)
    assert not dscores.any()
    expected = np.zeros_like(V)
    for n, b, t in np.ndindex(6, 2, 4):
        expected[b, cache.sample[n, b, t].argmax()] += dz[n, b, t]
    np.testing.assert_allclose(dv, expected, rtol=1e-13)


def test_straight_through_has_the_score_gradient_of_soft_attention():
    z, cache = F.hard_attend(SCORES, V, MASK, rng=np.random.default_rng(1), draws=6)
    dz = rng.standard_normal(z.shape)
    dscores, dv = F.straight_through_backward(dz, cache)
    expected, _ = F.attend_backward(dz.sum(0), F.attend(SCORES, V, MASK)[1])
    np.testing.assert_allclose(dscores, expected, rtol=1e-12)
    np.testing.assert_array_equal(dv, F.hard_attend_backward(dz, cache)[1])


def test_gradients_of_log_probability_and_entropy_computed_with_loops():
    """d log p(s) / dscores = onehot(s) - a, and dH / dscores = -a (log a + H)."""
    scores = SCORES[0, :1, :3]
    a = softmax_row(scores[0])
    sample = np.array([[False, True, False]])
    _, cache = F.log_probability(scores, sample)
    d = F.log_probability_backward(np.ones(1), cache)
    assert d[0] == pytest.approx([-a[0], 1 - a[1], -a[2]], rel=1e-13)
    h = -sum(p * math.log(p) for p in a)
    d = F.entropy_backward(np.ones(1), F.entropy(scores)[1])
    assert d[0] == pytest.approx([-p * (math.log(p) + h) for p in a], rel=1e-12)


# The layer.

QUERIES, MEMORY, WORDS = rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 5, 6)), MASK[:, 0]


def layer(make=HardAttention, **settings):
    return make(Similarity("general", 3, 6, rng=np.random.default_rng(1), dtype=np.float64), **settings)


def test_the_layer_samples_in_training_and_is_deterministic_otherwise():
    hard, soft = layer(), layer(GlobalAttention)
    drawing = {"train": True, "rng": np.random.default_rng(0), "draws": 20_000}
    context, cache = hard.forward(QUERIES, MEMORY, WORDS, **drawing)
    expected, attended = soft.forward(QUERIES, MEMORY, WORDS)
    np.testing.assert_array_equal(cache.weights, attended.weights)
    error = context.std(0) / math.sqrt(20_000)
    assert (np.abs(context.mean(0) - expected) <= 4.5 * error).all()  # 48 numbers
    for settings in ({}, {"rng": np.random.default_rng(0)}, {"draws": 3}):
        context, cache = hard.forward(QUERIES, MEMORY, WORDS, **settings)
        assert context.shape == (2, 4, 6)
        np.testing.assert_array_equal(cache.sample.argmax(-1), attended.weights.argmax(-1))


def test_a_straight_through_layer():
    hard, soft = layer(straight_through=True), layer(GlobalAttention)
    context, cache = hard.forward(QUERIES, MEMORY, WORDS, train=True, rng=np.random.default_rng(0))
    dcontext = rng.standard_normal(context.shape)
    dqueries, _ = hard.backward(dcontext, cache)
    expected, _ = soft.backward(dcontext, soft.forward(QUERIES, MEMORY, WORDS)[1])
    np.testing.assert_allclose(dqueries, expected, rtol=1e-12)
    np.testing.assert_allclose(hard.similarity.weight.grad, soft.similarity.weight.grad, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("straight_through", [False, True])
def test_dtypes_are_kept_and_inputs_are_not_modified(dtype, straight_through):
    similarity = Similarity("general", 3, 6, dtype=dtype)
    hard = HardAttention(similarity, straight_through=straight_through)
    queries, memory = QUERIES.astype(dtype), MEMORY.astype(dtype)
    context, cache = hard.forward(queries, memory, WORDS, train=True, rng=np.random.default_rng(0), draws=2)
    dcontext, choices = np.ones_like(context), {}
    copies = [x.copy() for x in (queries, memory, context, cache.sample, cache.weights)]
    if not straight_through:
        dlog_prob, dentropy = F.score_function(context.sum((-1, -2)), -1.0, entropy_weight=0.1)
        assert dlog_prob.dtype == dentropy.dtype == dtype
        choices = {"dlog_prob": dlog_prob, "dentropy": dentropy}
    dqueries, dmemory = hard.backward(dcontext, cache, **choices)
    assert {x.dtype for x in (context, dqueries, dmemory, cache.log_prob, cache.entropy)} == {np.dtype(dtype)}
    assert (dcontext == 1).all()
    for array, copy in zip((queries, memory, context, cache.sample, cache.weights), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F.hard_attend(SCORES, V, draws=3), "3 draws need a generator"),
        (lambda: F.hard_attend(SCORES, V, MASK.astype(int)), "make it bool"),
        (lambda: F.entropy(SCORES, MASK[..., :4]), "must broadcast"),
        (lambda: layer().forward(QUERIES, MEMORY, train=True), "train=True needs a generator: give rng"),
        (lambda: layer().forward(QUERIES, MEMORY, WORDS[:, :4]), "they must agree"),
        (lambda: MovingBaseline(1.2), "decay is 1.2"),
    ],
)
def test_invalid_inputs_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_straight_through_refuses_gradients_of_rewards():
    hard = layer(straight_through=True)
    context, cache = hard.forward(QUERIES, MEMORY)
    with pytest.raises(UserError, match="leave them out"):
        hard.backward(context, cache, dlog_prob=np.ones((2, 4)))
