"""Losses: the targets that count and those that are refused. Their gradients are in test_gradcheck.py."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional import cross_entropy, cross_entropy_backward


def test_a_padding_id_may_lie_outside_the_vocabulary(rng):
    """PyTorch pads targets with -100: such targets are ignored."""
    logits = rng.standard_normal((1, 3, 5))
    padded, cache = cross_entropy(logits, np.array([[2, 4, -100]]), pad_id=-100)
    real, _ = cross_entropy(logits[:, :2], np.array([[2, 4]]))
    assert padded == pytest.approx(real, rel=1e-15)
    assert not cross_entropy_backward(1.0, cache)[0, 2].any()


@pytest.mark.parametrize("wrong", [-1, 5])
def test_targets_outside_the_vocabulary_are_refused(wrong, rng):
    """As an index, -1 would be the last token without an error."""
    with pytest.raises(UserError, match=f"target 1 .* is {wrong}, outside the 5 tokens"):
        cross_entropy(rng.standard_normal((1, 3, 5)), np.array([[2, wrong, 0]]), pad_id=0)


def test_a_batch_of_padding_has_loss_0(rng):
    logits = rng.standard_normal((2, 5))
    loss, cache = cross_entropy(logits, np.array([0, 0]), pad_id=0)
    assert loss == 0
    assert not cross_entropy_backward(1.0, cache).any()


def test_the_loss_of_a_single_token_is_divided_by_1():
    loss, _ = cross_entropy(np.zeros((2, 5)), np.array([3, 0]), pad_id=0)
    assert loss == pytest.approx(np.log(5), rel=1e-15)
