"""The four similarities of a query and a key: values by loops, gradients by complex step."""

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking import gradcheck

PAIRS = {
    "dot": (F.dot_similarity, F.dot_similarity_backward),
    "general": (F.general_similarity, F.general_similarity_backward),
    "concat": (F.concat_similarity, F.concat_similarity_backward),
    "perceptron": (F.perceptron_similarity, F.perceptron_similarity_backward),
}
ORACLES = {  # for one query and one key, as in the document's formulas
    "dot": lambda q, k: q @ k,
    "general": lambda q, k, w: q @ w @ k,
    "concat": lambda q, k, w: w @ np.concatenate([q, k]),
    "perceptron": lambda q, k, w, u, v: v @ np.tanh(w.T @ q + u.T @ k),
}
WEIGHTS = {"dot": [], "general": [(3, 3)], "concat": [(6,)], "perceptron": [(3, 5), (3, 5), (5,)]}
every_similarity = pytest.mark.parametrize("name", PAIRS)


def inputs(name, lead=(2,), dtype=np.float64, seed=0):
    """Return q, k and the weights of one similarity, with 4 queries and 5 keys of width 3."""
    rng = np.random.default_rng(seed)
    shapes = [(*lead, 4, 3), (*lead, 5, 3), *WEIGHTS[name]]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@every_similarity
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_every_score_depends_on_its_query_and_its_key(name, lead):
    q, k, *weights = inputs(name, lead)
    scores, _ = PAIRS[name][0](q, k, *weights)
    assert scores.shape == (*lead, 4, 5)
    for where in np.ndindex(*lead):
        for t, s in np.ndindex(4, 5):
            expected = ORACLES[name](q[where][t], k[where][s], *weights)
            assert scores[*where, t, s] == pytest.approx(expected, rel=1e-13)


@every_similarity
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_gradients_are_exact(name, lead):
    report = gradcheck(PAIRS[name], *inputs(name, lead), hessian=True, tolerance=1e-12)
    assert report.ok, str(report)


@every_similarity
def test_there_is_one_gradient_for_each_input_in_order_and_shape(name):
    arrays = inputs(name)
    scores, cache = PAIRS[name][0](*arrays)
    grads = PAIRS[name][1](np.ones_like(scores), cache)
    assert [g.shape for g in grads] == [a.shape for a in arrays]


@every_similarity
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_the_dtype_is_kept(name, dtype):
    scores, cache = PAIRS[name][0](*inputs(name, dtype=dtype))
    assert scores.dtype == dtype
    assert {g.dtype for g in PAIRS[name][1](scores, cache)} == {np.dtype(dtype)}


@every_similarity
def test_inputs_are_not_modified(name):
    arrays, before = inputs(name), inputs(name)
    scores, cache = PAIRS[name][0](*arrays)
    dscores = np.ones_like(scores)
    PAIRS[name][1](dscores, cache)
    assert (dscores == 1).all()
    for now, then in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_dot_is_general_with_the_identity_and_the_scores_of_unscaled_attention():
    q, k = inputs("dot")
    scores, _ = F.dot_similarity(q, k)
    np.testing.assert_allclose(F.general_similarity(q, k, np.eye(3))[0], scores, rtol=1e-14)
    _, cache = F.attention(q, k, k, scale=1.0)
    np.testing.assert_array_equal(cache.scores, scores)


def test_after_a_softmax_concat_does_not_depend_on_the_query():
    """w · [q; k] is a term of the query plus a term of the key, and the softmax cancels the first."""
    q, k, weight = inputs("concat", lead=())
    weights, _ = F.softmax(F.concat_similarity(q, k, weight)[0])
    np.testing.assert_allclose(weights, np.broadcast_to(weights[:1], weights.shape), rtol=1e-12)
    q, k, *network = inputs("perceptron", lead=())
    weights, _ = F.softmax(F.perceptron_similarity(q, k, *network)[0])
    assert np.ptp(weights, axis=0).max() > 0.1
