"""Linear attention and the delta rule: the size of the chunks, and a key that comes twice."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from npformer import UserError
from npformer import functional as F

RNG = np.random.default_rng(0)
Q, K = RNG.standard_normal((2, 2, 3, 7, 4))  # (B, H, T, K)
V, BETA = RNG.standard_normal((2, 3, 7, 5)), RNG.uniform(0, 1, (2, 3, 7))
LOG_DECAY = -RNG.exponential(1, (2, 3, 7))


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_the_size_of_the_chunks_changes_nothing(chunk):
    assert_allclose(F.linear_attention(Q, K, V, chunk)[0], F.linear_attention(Q, K, V)[0], atol=1e-12)
    y, cache = F.delta_rule(Q, K, V, BETA, chunk)
    assert_allclose(y, F.delta_rule(Q, K, V, BETA)[0], rtol=1e-11, atol=1e-11)
    assert len(cache.states) == -(-7 // chunk)
    y, _ = F.gated_delta_rule(Q, K, V, BETA, LOG_DECAY, chunk)
    assert_allclose(y, F.gated_delta_rule(Q, K, V, BETA, LOG_DECAY)[0], rtol=1e-11, atol=1e-11)


def test_a_decay_of_1_changes_nothing_and_one_near_0_forgets_the_tokens_before():
    without, _ = F.gated_delta_rule(Q, K, V, BETA, 0 * LOG_DECAY)
    assert_allclose(without, F.delta_rule(Q, K, V, BETA)[0], rtol=1e-11, atol=1e-11)
    with np.errstate(over="raise"):
        forgotten, _ = F.gated_delta_rule(Q, K, V, BETA, 0 * LOG_DECAY - 800)
    assert_allclose(forgotten, BETA[..., None] * (Q * K).sum(-1, keepdims=True) * V, atol=1e-12)


def test_the_delta_rule_replaces_the_value_of_a_key_and_linear_attention_adds():
    keys = np.eye(4)[[1, 2, 1]][None]
    values, query = np.array([[[1.0], [5], [3]]]), np.broadcast_to(np.eye(4)[1], (1, 3, 4))
    assert F.delta_rule(query, keys, values, np.ones((1, 3)))[0][0, :, 0].tolist() == [1, 1, 3]
    assert F.linear_attention(query, keys, values)[0][0, :, 0].tolist() == [1, 1, 4]
    with pytest.raises(UserError, match="chunk is 0: it must be a whole number, 1 or more"):
        F.linear_attention(query, keys, values, 0)
