"""Token ids: those that a model accepts, and the sentence about the first wrong one."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional.ids import check_ids, check_pairs, take_ids


def taken(ids, **settings):
    return take_ids(ids, 9, 4, "source", np.zeros(1), **settings)


@pytest.mark.parametrize(
    ("ids", "settings", "message"),
    [
        ([[5, 6], [5]], {}, "source holds lists that differ in length: pad them"),
        ([5, 6], {}, r"source has shape \(2,\) and dtype int64: give integers \(B, T\)"),
        ([[5.0]], {}, "source has shape .* and dtype float64: give integers"),
        ([[True]], {}, "dtype bool: give integers"),
        (np.zeros((1, 0), int), {}, r"source has shape \(1, 0\): give at least one sentence"),
        (np.zeros((0, 3), int), {}, "give at least one sentence, of at least one token"),
        ([[1] * 5], {}, "source is 5 tokens long and the model's limit is 4: shorten it, or train a model"),
        ([[1, 1]], {"start": 3}, "source is 5 tokens long"),
        (
            [[1, 2], [3, 9]],
            {},
            r"source\[1, 1\] is 9, outside the vocabulary of 9 tokens: use ids from 0 to 8",
        ),
        ([[1, -1]], {}, r"source\[0, 1\] is -1, outside"),
    ],
)
def test_wrong_ids(ids, settings, message):
    with pytest.raises(UserError, match=message):
        taken(ids, **settings)


def test_a_text_of_the_largest_length_is_right():
    check_ids(np.ones((1, 4), int), 9, 4, "ids")
    check_ids(np.ones((1, 1), int), 9, 4, "ids", start=3)


def test_source_and_target_need_equally_many_sentences():
    check_pairs(np.zeros((2, 3)), np.zeros((2, 1)))
    with pytest.raises(UserError, match="source holds 2 sentences and target_in 3: give equally many"):
        check_pairs(np.zeros((2, 3)), np.zeros((3, 3)))
