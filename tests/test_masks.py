"""Masks: True means may look."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional import layer_norm
from npformer.masks import causal_mask, local_mask, mask_from_embeddings, padding_mask, query_mask

IDS = np.array([[5, 6, 0], [7, 0, 0]])


def test_padding_mask_broadcasts_over_heads_and_queries():
    mask = padding_mask(IDS)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_query_mask_broadcasts_over_heads_and_keys():
    mask = query_mask(IDS)
    assert mask.shape == (2, 1, 3, 1)
    assert mask[:, 0, :, 0].tolist() == [[True, True, False], [True, False, False]]


def test_another_padding_id():
    assert padding_mask(IDS, pad_id=6)[0, 0, 0].tolist() == [True, False, True]
    assert query_mask(IDS, pad_id=6)[0, 0, :, 0].tolist() == [True, False, True]


def test_padding_and_causal_combine():
    mask = padding_mask(IDS) & causal_mask(3, IDS)
    assert mask.shape == (2, 1, 3, 3)
    assert mask[0, 0].astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]


def test_local_mask_is_a_band():
    assert local_mask(4, 1, IDS).astype(int).tolist() == [
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 1, 1],
        [0, 0, 1, 1],
    ]


def test_local_mask_of_width_0_sees_itself_only():
    np.testing.assert_array_equal(local_mask(4, 0, IDS), np.eye(4, dtype=bool))


def test_a_negative_width_is_refused():
    with pytest.raises(UserError, match="width of a local mask is -1: make it 0 or more"):
        local_mask(4, -1, IDS)


@pytest.mark.parametrize(
    "mask", [padding_mask(IDS), query_mask(IDS), causal_mask(3, IDS), local_mask(3, 1, IDS)]
)
def test_masks_are_bool(mask):
    assert mask.dtype == bool


# --- the first document's mask, and how it fails ---


def test_mask_from_embeddings_hides_zero_rows():
    x = np.array([[[1.0, 2], [0, 0]]])
    assert mask_from_embeddings(x).tolist() == [[[[True, False]]]]


def test_mask_from_embeddings_passes_padding_once_positions_are_added():
    x = np.zeros((1, 2, 2)) + np.array([[0, 1], [0.84, 0.54]])
    assert mask_from_embeddings(x).all()


def test_mask_from_embeddings_hides_a_real_word_whose_norm_sums_to_0():
    x, _ = layer_norm(np.array([[[3.0, 1.0]]]), np.ones(2), np.zeros(2), eps=0.0)
    assert np.abs(x).min() == 1
    assert not mask_from_embeddings(x).any()
