"""How masks act on scores: the exact way, and the documents' ways."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional import Masking, attention, attention_backward, mask_scores, mask_scores_backward
from npformer.functional.masking import mask_queries

SCORES = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
MASK = np.array([[True, False, True], [True, True, True]])
FIRST_QUERY = np.array([[True], [False]])


def test_exact_masking_puts_minus_infinity():
    scores, _ = mask_scores(SCORES, MASK)
    assert scores.tolist() == [[1, -np.inf, 3], [4, 5, 6]]


def test_replacing_and_adding():
    replaced, _ = mask_scores(SCORES, MASK, masking=Masking(-100.0))
    added, _ = mask_scores(SCORES, MASK, masking=Masking(-100.0, "add"))
    assert (replaced[0, 1], added[0, 1]) == (-100, -98)
    assert (replaced[MASK] == SCORES[MASK]).all()
    assert (added[MASK] == SCORES[MASK]).all()


def test_a_replaced_score_has_no_gradient_and_one_added_to_keeps_it():
    for how, expected in (("replace", 0), ("add", 1)):
        _, cache = mask_scores(SCORES, MASK, masking=Masking(-100.0, how))
        dscores = mask_scores_backward(np.ones((2, 3)), cache)
        assert dscores[0, 1] == expected
        assert (dscores[MASK] == 1).all()


def test_queries_masked_before_the_softmax_have_score_0_and_no_gradient():
    scores, cache = mask_scores(SCORES, MASK, FIRST_QUERY, Masking(-100.0, query="before"))
    assert scores.tolist() == [[1, -100, 3], [0, 0, 0]]
    assert mask_scores_backward(np.ones((2, 3)), cache).tolist() == [[1, 0, 1], [0, 0, 0]]


def test_queries_masked_after_the_softmax_keep_their_scores():
    scores, cache = mask_scores(SCORES, None, FIRST_QUERY)
    np.testing.assert_array_equal(scores, SCORES)
    np.testing.assert_array_equal(mask_scores_backward(SCORES, cache), SCORES)
    assert mask_queries(SCORES, FIRST_QUERY).tolist() == [[1, 2, 3], [0, 0, 0]]


@pytest.mark.parametrize(("query", "weight"), [("after", 0), ("before", 0.25)])
def test_a_masked_query_attends_to_nothing_or_to_all_alike(query, weight):
    """Zero rows and no gradient (the document's code), or uniform rows (its prose)."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 4, 8))
    queries = np.array([True, True, False, True])[:, None]
    y, cache = attention(q, k, v, query_mask=queries, masking=Masking(-1e10, query=query))
    assert cache.weights[2].tolist() == [weight] * 4
    dq, _, _ = attention_backward(np.ones_like(y), cache)
    assert not dq[2].any()
    assert dq[[0, 1, 3]].any(-1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize(
    "masking", [Masking(), Masking(-(2.0**32) + 1), Masking(-1e9, "add"), Masking(-1e10, query="before")]
)
def test_scores_keep_their_dtype(dtype, masking):
    scores, cache = mask_scores(SCORES.astype(dtype), MASK, FIRST_QUERY, masking)
    assert scores.dtype == dtype
    assert mask_scores_backward(scores, cache).dtype == dtype


@pytest.mark.parametrize("mask", [MASK.astype(int), MASK.astype(np.float32), [[True]]])
def test_a_mask_that_is_not_bool_is_refused(mask):
    with pytest.raises(UserError, match=r"mask has dtype .*: make it bool, where True means may look"):
        mask_scores(SCORES, mask)


@pytest.mark.parametrize("shape", [(3, 3), (2, 2), (1, 2, 3), (2,)])
def test_a_mask_that_does_not_fit_is_refused(shape):
    with pytest.raises(UserError, match=r"query_mask has shape .* must broadcast to .* \(2, 3\)"):
        mask_scores(SCORES, None, np.ones(shape, bool))


@pytest.mark.parametrize("shape", [(3,), (1, 1), (2, 1), (1, 3), ()])
def test_a_mask_that_broadcasts_is_taken(shape):
    scores, _ = mask_scores(SCORES, np.ones(shape, bool))
    np.testing.assert_array_equal(scores, SCORES)
