"""Masks, where True means that the query may attend to the key, and their effect on the scores."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional import (
    Masking,
    fill_scores,
    fill_scores_backward,
    layer_norm,
    mask_scores,
    mask_scores_backward,
    tutorial_attention,
    tutorial_attention_backward,
)
from npformer.functional.masks import (
    causal_mask,
    local_mask,
    mask_from_embeddings,
    padding_mask,
    query_mask,
)

IDS = np.array([[5, 6, 0], [7, 0, 0]])


def test_masks_of_padding_broadcast_over_heads_and_over_queries_or_keys():
    keys, queries = padding_mask(IDS), query_mask(IDS)
    assert (keys.shape, queries.shape) == ((2, 1, 1, 3), (2, 1, 3, 1))
    assert (
        keys[:, 0, 0].tolist() == queries[:, 0, :, 0].tolist() == [[True, True, False], [True, False, False]]
    )
    assert keys.dtype == queries.dtype == bool
    assert padding_mask(IDS, pad_id=6)[0, 0, 0].tolist() == [True, False, True]
    assert query_mask(IDS, pad_id=6)[0, 0, :, 0].tolist() == [True, False, True]


def test_a_window_of_a_causal_mask():
    assert causal_mask(4, IDS, window=2).astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    np.testing.assert_array_equal(causal_mask(4, IDS, window=1), np.eye(4, dtype=bool))
    np.testing.assert_array_equal(causal_mask(4, IDS, window=4), causal_mask(4, IDS))


@pytest.mark.parametrize("window", [None, 3])
def test_a_causal_mask_can_start_later(window):
    """The rows are the last rows of the mask of all positions."""
    whole = causal_mask(6, IDS, window=window)
    np.testing.assert_array_equal(causal_mask(2, IDS, window=window, start=4), whole[4:])


@pytest.mark.parametrize("window", [None, 2])
def test_each_sentence_can_have_a_start_of_its_own(window):
    mask = causal_mask(3, IDS, window=window, start=np.array([2, 0]))
    assert mask.shape == (2, 1, 3, 5)
    np.testing.assert_array_equal(mask[0, 0], causal_mask(3, IDS, window=window, start=2))
    np.testing.assert_array_equal(mask[1, 0, :, :3], causal_mask(3, IDS, window=window))
    assert not mask[1, 0, :, 3:].any()


def test_a_window_of_0_is_refused():
    with pytest.raises(UserError, match="the window of a causal mask is 0: make it 1 or more"):
        causal_mask(4, IDS, window=0)


def test_local_mask_is_a_band():
    assert local_mask(4, 1, IDS).astype(int).tolist() == [
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 1, 1],
        [0, 0, 1, 1],
    ]
    np.testing.assert_array_equal(local_mask(4, 0, IDS), np.eye(4, dtype=bool))


def test_a_negative_width_is_refused():
    with pytest.raises(UserError, match="width of a local mask is -1: make it 0 or more"):
        local_mask(4, -1, IDS)


# --- the first document's mask, and its failures ---


def test_mask_from_embeddings_hides_rows_that_sum_to_0():
    """Padding is not hidden once positions are added, and a token whose norm sums to 0 is hidden."""
    assert mask_from_embeddings(np.array([[[1.0, 2], [0, 0]]])).tolist() == [[[[True, False]]]]
    assert mask_from_embeddings(np.zeros((1, 2, 2)) + np.array([[0, 1], [0.84, 0.54]])).all()
    x, _ = layer_norm(np.array([[[3.0, 1.0]]]), np.ones(2), np.zeros(2), eps=0.0)
    assert np.abs(x).min() == 1
    assert not mask_from_embeddings(x).any()


# --- the effect of a mask: the exact one, and those of the documents ---

SCORES = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
MASK = np.array([[True, False, True], [True, True, True]])
FIRST_QUERY = np.array([[True], [False]])


def test_exact_masking_sets_minus_infinity():
    scores, cache = mask_scores(SCORES, MASK)
    assert scores.tolist() == [[1, -np.inf, 3], [4, 5, 6]]
    assert mask_scores_backward(SCORES, cache).tolist() == [[1, 0, 3], [4, 5, 6]]
    scores, cache = mask_scores(SCORES, None)
    assert scores is mask_scores_backward(SCORES, cache) is SCORES


def test_a_replaced_score_has_no_gradient_but_a_score_with_an_added_number_has_one():
    for how, expected in (("replace", 0), ("add", 1)):
        _, cache = fill_scores(SCORES, MASK, Masking(-100.0, how))
        dscores = fill_scores_backward(np.ones((2, 3)), cache)
        assert dscores[0, 1] == expected
        assert (dscores[MASK] == 1).all()


def test_queries_masked_before_the_softmax_have_score_0_and_no_gradient():
    scores, cache = fill_scores(SCORES, MASK, Masking(-100.0, query="before"), FIRST_QUERY)
    assert scores.tolist() == [[1, -100, 3], [0, 0, 0]]
    assert fill_scores_backward(np.ones((2, 3)), cache).tolist() == [[1, 0, 1], [0, 0, 0]]


def test_queries_masked_after_the_softmax_keep_their_scores():
    scores, cache = fill_scores(SCORES, None, Masking(), FIRST_QUERY)
    np.testing.assert_array_equal(scores, SCORES)
    np.testing.assert_array_equal(fill_scores_backward(SCORES, cache), SCORES)


@pytest.mark.parametrize(("query", "weight"), [("after", 0), ("before", 0.25)])
def test_a_masked_query_attends_to_no_key_or_to_all_keys_uniformly(query, weight):
    """Zero rows and no gradient (the document's code), or uniform rows (its prose)."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 4, 8))
    queries = np.array([True, True, False, True])[:, None]
    y, cache = tutorial_attention(q, k, v, None, Masking(-1e10, query=query), query_mask=queries)
    assert cache.weights[2].tolist() == [weight] * 4
    dq, _, _ = tutorial_attention_backward(np.ones_like(y), cache)
    assert not dq[2].any()
    assert dq[[0, 1, 3]].any(-1).all()


@pytest.mark.parametrize("mask", [MASK.astype(int), MASK.astype(np.float32), [[True]]])
def test_a_mask_that_is_not_bool_is_refused(mask):
    with pytest.raises(UserError, match=r"mask has dtype .*: make it bool, where True means"):
        mask_scores(SCORES, mask)
    with pytest.raises(UserError, match=r"mask has dtype .*: make it bool, where True means"):
        fill_scores(SCORES, mask, Masking(-100.0))


@pytest.mark.parametrize("shape", [(3, 3), (2, 2), (1, 2, 3), (2,)])
def test_a_mask_of_the_wrong_shape_is_refused(shape):
    with pytest.raises(UserError, match=r"^mask has shape .* must broadcast to .* \(2, 3\)"):
        mask_scores(SCORES, np.ones(shape, bool))
    with pytest.raises(UserError, match=r"query_mask has shape .* must broadcast to .* \(2, 3\)"):
        fill_scores(SCORES, None, Masking(), np.ones(shape, bool))
