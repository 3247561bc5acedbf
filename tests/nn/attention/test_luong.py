"""The attentions of recurrent networks: loops, special cases, and decoding one position at a time."""

import math

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.nn.attention import (
    AttentionalState,
    GlobalAttention,
    LocalMonotonic,
    LocalPredictive,
    Similarity,
)
from npformer.nn.attention.similarity import SIMILARITIES

rng = np.random.default_rng(0)
H, MEMORY = rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 7, 6))
WORDS = np.array([[True] * 7, [True] * 4 + [False] * 3])
MAKERS = {
    "global": lambda similarity, **_: GlobalAttention(similarity),
    "local-m": lambda similarity, reach=2, **_: LocalMonotonic(similarity, reach=reach),
    "local-p": lambda similarity, reach=2, **more: LocalPredictive(similarity, reach=reach, **more),
}
every_attention = pytest.mark.parametrize("name", MAKERS)


def test_the_attentional_state_has_one_matrix_as_in_the_paper():
    """Equation 5 of Luong et al. 2015."""
    assert [(name, part.shape) for name, part in AttentionalState(3, 2).named_parameters()] == [
        ("join.weight", (5, 2))
    ]


def make_layer(name, kind="general", d_key=6, *, dtype=np.float64, **settings):
    """Return one of the three attentions, with predicted positions far apart."""
    draw = np.random.default_rng(1)
    layer = MAKERS[name](Similarity(kind, 6, d_key, rng=draw, dtype=dtype), rng=draw, dtype=dtype, **settings)
    if name == "local-p":
        layer.position_v.value *= 3
    return layer


# Values, computed with loops.


def expected_row(h, memory, n_tokens, score, near=lambda s: True, factor=lambda s: 1.0):
    """Return weights and context of one query by the paper's formulas. Shapes: h (N,), memory (S, M)."""
    inside = [s for s in range(n_tokens) if near(s)]
    raised = {s: math.exp(score(h, memory[s])) for s in inside}
    weights = np.zeros(len(memory))
    for s in inside:
        weights[s] = raised[s] / sum(raised.values()) * factor(s)
    return weights, sum((weights[s] * memory[s] for s in inside), np.zeros(memory.shape[1]))


def check_rows(layer, expected, **settings):
    """Check every row of the weights and every context against expected(b, t, score, n_tokens)."""
    context, cache = layer.forward(H, MEMORY, WORDS, **settings)
    weight = layer.similarity.weight.value

    def score(h, m):
        return h @ weight @ m

    for b, t in np.ndindex(2, 4):
        weights, c = expected(b, t, score, int(WORDS[b].sum()))
        np.testing.assert_allclose(cache.weights[b, t], weights, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(context[b, t], c, rtol=1e-12, atol=1e-14)
    return cache


def test_global_attention_by_loops():
    check_rows(make_layer("global"), lambda b, t, score, n: expected_row(H[b, t], MEMORY[b], n, score))


@pytest.mark.parametrize("start", [0, 2])
def test_local_monotonic_by_loops(start):
    def expected(b, t, score, n):
        return expected_row(H[b, t], MEMORY[b], n, score, lambda s: abs(s - start - t) <= 1)

    cache = check_rows(make_layer("local-m", reach=1), expected, start=start)
    assert cache.positions.tolist() == [[start, start + 1, start + 2, start + 3]] * 2


def test_local_predictive_by_loops():
    """The window has a Gaussian around p, whose deviation is half the reach."""
    _, cache = make_layer("local-p").forward(H, MEMORY, WORDS)

    def expected(b, t, score, n):
        p = cache.positions[b, t]
        inside, gaussian = lambda s: abs(s - p) <= 2, lambda s: math.exp(-((s - p) ** 2) / 2)
        return expected_row(H[b, t], MEMORY[b], n, score, inside, gaussian)

    check_rows(make_layer("local-p"), expected)


# Special cases in which two of them agree.


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_a_window_over_everything_is_global(kind):
    whole, cache = make_layer("global", kind).forward(H, MEMORY, WORDS)
    for name, reach in {"local-m": 7, "local-p": 1e9}.items():
        context, local = make_layer(name, kind, reach=reach).forward(H, MEMORY, WORDS)
        np.testing.assert_allclose(local.weights, cache.weights, rtol=1e-13)
        np.testing.assert_allclose(context, whole, rtol=1e-12)


def test_a_window_of_one_token_reads_that_token():
    context, cache = make_layer("local-m", reach=0).forward(H, MEMORY)
    np.testing.assert_array_equal(context, MEMORY[:, :4])
    np.testing.assert_array_equal(cache.weights[0], np.eye(4, 7))


# One position at a time, padding, and sentences of padding only.


@every_attention
@pytest.mark.parametrize("kind", SIMILARITIES)
def test_decoding_step_by_step_gives_the_same_outputs_and_gradients(name, kind):
    together, apart = (make_layer(name, kind) for _ in range(2))
    context, cache = together.forward(H, MEMORY, WORDS)
    dcontext = rng.standard_normal(context.shape)
    dqueries, dmemory = together.backward(dcontext, cache)
    summed = 0
    for t in range(4):
        now = slice(t, t + 1)
        row, cache_t = apart.forward(H[:, now], MEMORY, WORDS, start=t)
        np.testing.assert_allclose(row, context[:, now], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(cache_t.weights, cache.weights[:, now], rtol=1e-12, atol=1e-15)
        if name != "global":
            np.testing.assert_allclose(cache_t.positions, cache.positions[:, now], rtol=1e-12)
        drow, dmemory_t = apart.backward(dcontext[:, now], cache_t)
        np.testing.assert_allclose(drow, dqueries[:, now], rtol=1e-10, atol=1e-13)
        summed = summed + dmemory_t
    np.testing.assert_allclose(summed, dmemory, rtol=1e-10, atol=1e-13)
    for ours, theirs in zip(apart.parameters(), together.parameters(), strict=True):
        np.testing.assert_allclose(ours.grad, theirs.grad, rtol=1e-10, atol=1e-13)


@every_attention
def test_a_sentence_of_padding_has_context_0_and_finite_gradients(name):
    layer = make_layer(name)
    mask = np.array([[False] * 7, [True] * 7])
    context, cache = layer.forward(H, MEMORY, mask)
    assert not context[0].any()
    assert context[1].any()
    dqueries, dmemory = layer.backward(np.ones_like(context), cache)
    assert not dqueries[0].any()
    assert not dmemory[0].any()
    assert all(np.isfinite(a).all() for a in (dqueries, dmemory, *(p.grad for p in layer.parameters())))


def test_a_predicted_window_always_contains_a_token():
    """p lies between 0 and S, so with D of 1 or more it reaches at least the first or the last token."""
    layer = make_layer("local-p", reach=1)
    for size in (100, -100):
        layer.position_v.value[...] = size * np.sign(layer.position_v.value)
        _, cache = layer.forward(5 * H, MEMORY, WORDS)
        assert cache.aligned.sum(-1).round(12).tolist() == [[1] * 4] * 2


# The protocol.


@every_attention
def test_queries_and_memory_may_differ_in_width(name):
    layer = make_layer(name, d_key=5)
    context, _ = layer.forward(H, MEMORY[..., :5])
    assert context.shape == (2, 4, 5)
    with pytest.raises(UserError, match=r"takes queries of shape \(B, T, 6\) and got \(2, 4, 5\)"):
        layer.forward(H[..., :5], MEMORY[..., :5])


def test_a_window_needs_a_width():
    with pytest.raises(UserError, match="reach is -1: make it 0 or more"):
        make_layer("local-m", reach=-1)
    with pytest.raises(UserError, match="reach is 0: make it more than 0"):
        make_layer("local-p", reach=0)
