"""The weighted mean of a position's states: its numbers of steps, its cost, and what has no gradient."""

import numpy as np

import npformer.functional as F
from npformer.checking.cases.universal import N_STEPS, TOOK

rng = np.random.default_rng(0)
STATES, P = rng.standard_normal((N_STEPS, 2, 4, 3)), rng.uniform(0.1, 0.4, (N_STEPS, 2, 4))


def test_steps_remainder_and_ponder_cost():
    _, cache = F.mix_states(STATES, P, TOOK)
    np.testing.assert_array_equal(cache.steps, TOOK.sum(0))
    last = TOOK.sum(0) - 1
    for b, t in np.ndindex(2, 4):
        expected = 1 - P[: last[b, t], b, t].sum() if last[b, t] >= 0 else 0
        np.testing.assert_allclose(cache.remainder[b, t], expected, rtol=1e-12)
    np.testing.assert_allclose(cache.ponder, cache.steps + cache.remainder, rtol=1e-15)
    np.testing.assert_allclose(cache.weights.sum(0), TOOK.any(0), rtol=1e-12)
    single = F.mix_states(STATES.astype(np.float32), P.astype(np.float32), TOOK)[1]
    assert single.ponder.dtype == np.float32


def test_probabilities_after_the_last_step_have_no_effect_and_no_gradient():
    y, cache = F.mix_states(STATES, P, TOOK)
    changed = np.where(TOOK, P, 0.9)
    np.testing.assert_array_equal(F.mix_states(STATES, changed, TOOK)[0], y)
    dstates, dp = F.mix_states_backward(np.ones_like(y), cache, dponder=np.ones((2, 4)))
    assert not dstates[~TOOK].any()
    assert not dp[~cache.before].any()
    assert dp[cache.before].all()


def test_the_cost_decreases_with_the_probability_of_all_steps_but_the_last():
    _, cache = F.mix_states(np.ones((N_STEPS, 2, 4, 3)), np.full((N_STEPS, 2, 4), 0.1), TOOK)
    dponder = rng.standard_normal((2, 4))
    _, dp = F.mix_states_backward(np.zeros((2, 4, 3)), cache, dponder=dponder)
    np.testing.assert_array_equal(dp, np.where(cache.before, -dponder, 0))
