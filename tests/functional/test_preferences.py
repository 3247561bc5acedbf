"""The losses of whole answers at their edges. The formulas are in test_pairs.py."""

import numpy as np
import pytest

from npformer.functional import dpo, dpo_backward, group_advantages, grpo, grpo_backward


def test_a_pair_that_is_ordered_clearly_costs_nothing_and_a_wrong_one_is_pulled_without_overflow():
    chosen, rejected, nothing = np.array([0.0, -9e4]), np.array([-9e4, 0.0]), np.zeros(2)
    loss, cache = dpo(chosen, rejected, nothing, beta=1.0)
    assert loss == pytest.approx(4.5e4)
    dchosen, drejected = dpo_backward(1.0, cache)
    assert dchosen.tolist() == [0.0, -0.5] == (-drejected).tolist()


def test_the_gradient_of_a_pair_that_the_model_ranks_as_the_reference_does():
    """The two branches of the formula meet there."""
    step = 1e-30j
    loss, _ = dpo(np.array([1 + step]), np.ones(1), np.zeros(1), beta=1.0)
    assert loss.imag / 1e-30 == pytest.approx(-0.5)
    assert dpo_backward(1.0, dpo(np.ones(1), np.ones(1), np.zeros(1), beta=1.0)[1])[0] == -0.5


@pytest.mark.parametrize(
    ("advantage", "clipped"), [(1.0, [False, False, True]), (-1.0, [True, False, False])]
)
def test_a_token_that_moved_far_in_the_right_direction_is_clipped(advantage, clipped):
    log_probs, mask = np.log([[0.5, 1.0, 1.5]]), np.ones((1, 3), bool)
    _, cache = grpo(log_probs, np.zeros((1, 3)), log_probs, np.array([advantage]), mask, beta=0.0)
    assert (grpo_backward(1.0, cache)[0] == 0).tolist() == clipped


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_token_at_the_limit_itself_is_not_clipped(advantage):
    zero, gain = np.zeros((1, 1)), np.array([advantage])
    _, cache = grpo(zero, zero, zero, gain, np.ones((1, 1), bool), clip=0.0, beta=0.0)
    assert grpo_backward(1.0, cache).tolist() == [[-advantage]]


@pytest.mark.parametrize(("mask", "dlog_probs"), [([0, 1, 1], [0, -1, -1]), ([0, 0, 1], [0, 0, -2])])
def test_padding_has_no_part_even_where_it_is_not_finite(mask, dlog_probs):
    """The mean is over the tokens of the answers, and at prompts the arrays may hold anything."""
    log_probs = np.array([[-np.inf, -0.2, -0.3]])
    loss, cache = grpo(log_probs, log_probs, log_probs, np.array([2.0]), np.array([mask], bool))
    assert loss == pytest.approx(-2)
    assert grpo_backward(1.0, cache).tolist() == [dlog_probs]


def test_advantages_compare_the_answers_to_one_question():
    rewards = np.array([[1.0, 0, 0, 0], [1, 1, 1, 1]])
    assert group_advantages(rewards, normalize=False).tolist() == [[0.75, -0.25, -0.25, -0.25], [0] * 4]
    normalized = group_advantages(rewards)
    assert normalized[0].std() == pytest.approx(1)
    assert not normalized[1].any()
