"""Losses: the targets that count and those that are refused. Their formulas are in test_pairs.py."""

import numpy as np
import pytest

from npformer import UserError, kernels
from npformer.functional import (
    cross_entropy,
    cross_entropy_backward,
    kl_divergence,
    l2_distance,
    l2_distance_backward,
)
from npformer.kernels.gpu import losses as gpu

CROSS_ENTROPIES = cross_entropy, kernels.cross_entropy, kernels.cross_entropy_in_place
LOSSES = *CROSS_ENTROPIES, gpu.cross_entropy, kl_divergence, l2_distance


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


@pytest.mark.parametrize("loss_of", LOSSES)
@pytest.mark.parametrize("shape", [(2, 2), (2, 4), (3, 2), (6,), ()])
def test_targets_of_another_shape_are_refused(loss_of, shape, rng):
    """Where the numbers of rows happen to fit, the loss would be a wrong one."""
    targets = rng.random((*shape, 4)) if loss_of in (kl_divergence, l2_distance) else np.zeros(shape, int)
    with pytest.raises(UserError, match=r"the targets have shape .* and the logits \(2, 3, 4\): give one"):
        loss_of(rng.standard_normal((2, 3, 4)), targets)


def test_padding_is_no_token_of_a_vocabulary_of_one_token():
    loss, cache = cross_entropy(np.zeros((2, 1)), np.array([0, 7]), pad_id=7)
    assert loss == 0
    assert not cross_entropy_backward(1.0, cache).any()


def test_a_batch_of_padding_has_loss_0(rng):
    logits = rng.standard_normal((2, 5))
    loss, cache = cross_entropy(logits, np.array([0, 0]), pad_id=0)
    assert loss == 0
    assert not cross_entropy_backward(1.0, cache).any()


@pytest.mark.parametrize("loss_of", CROSS_ENTROPIES)
def test_an_impossible_token_costs_nothing_where_it_has_no_part(loss_of):
    """0 log 0 is 0: without smoothing, only the target has a part in the loss, and at padding nothing has."""
    logits = np.array([[2.0, -np.inf, 0.5], [-np.inf, 0.0, 0.0]])
    expected = np.log(1 + np.exp(-1.5))
    assert loss_of(logits[:1].copy(), np.array([0]))[0] == pytest.approx(expected, rel=1e-14)
    assert loss_of(logits.copy(), np.array([1, 0]), pad_id=0)[0] == np.inf
    assert loss_of(logits.copy(), np.array([0, 2]), pad_id=2)[0] == pytest.approx(expected, rel=1e-14)
    assert loss_of(logits[1:].copy(), np.array([0]), pad_id=0)[0] == 0
    assert loss_of(logits[:1].copy(), np.array([0]), smoothing=0.1)[0] == np.inf


def test_the_divergence_of_an_impossible_token_that_is_not_wanted_is_0():
    logits, q = np.array([[0.0, -np.inf, 0.0]]), np.array([[0.5, 0.0, 0.5]])
    assert kl_divergence(logits, q)[0] == pytest.approx(0.0, abs=1e-15)
    assert kl_divergence(logits, q[:, ::-1] * [[1, 1, 0]] + [[0, 0.5, 0]])[0] == np.inf


def test_the_distance_of_two_equal_points_has_no_gradient():
    """At this kink any gradient of length up to 1 would be valid, but NaN would not."""
    q = np.array([[0.5, 0.5, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    loss, cache = l2_distance(np.zeros((2, 4)), q)
    dlogits = l2_distance_backward(1.0, cache)
    assert loss == pytest.approx(0.25)
    assert dlogits[0].any()
    assert not dlogits[1].any()
