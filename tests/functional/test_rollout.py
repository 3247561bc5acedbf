"""Tests of attention rollout: its formula, and what it means for simple attention."""

import numpy as np
import pytest

from npformer.backend import is_cupy, to_backend, to_numpy
from npformer.errors import UserError
from npformer.functional import attention_rollout


def random_weights(*shape):
    x = np.exp(np.random.default_rng(0).standard_normal(shape))
    return x / x.sum(-1, keepdims=True)


def test_the_formula_entry_by_entry():
    """Follow every path from a position back to an input, as Abnar and Zuidema describe it."""
    weights = random_weights(3, 1, 2, 4, 4)
    mixing = weights[:, 0].mean(1) / 2 + np.eye(4) / 2
    rollout = attention_rollout(weights)
    assert rollout.shape == (3, 4, 4)
    for t in range(4):
        for s in range(4):
            paths = sum(
                mixing[2, t, i] * mixing[1, i, j] * mixing[0, j, s] for i in range(4) for j in range(4)
            )
            assert rollout[2, t, s] == pytest.approx(paths, abs=1e-15)
    assert np.allclose(rollout[0], mixing[0], rtol=0, atol=1e-15)
    assert np.allclose(rollout.sum(-1), 1, rtol=0, atol=1e-14)


def test_one_example_of_a_batch():
    weights = random_weights(3, 2, 2, 4, 4)
    np.testing.assert_array_equal(attention_rollout(weights, example=1), attention_rollout(weights[:, 1:]))


def test_attention_to_the_token_before():
    """After n layers that attend to the token before, the share at distance k is binomial."""
    before = np.eye(6, k=-1)
    before[0, 0] = 1
    last = attention_rollout([before] * 3)[-1, 5]
    assert last.tolist() == [0, 0, 1 / 8, 3 / 8, 3 / 8, 1 / 8]


def test_a_fully_masked_query_keeps_its_own_token():
    assert attention_rollout([[[[0, 0], [0.5, 0.5]]]])[0].tolist() == [[1, 0], [0.25, 0.75]]


@pytest.mark.torch
def test_half_precision_is_summed_in_float64():
    torch = pytest.importorskip("torch")
    weights = torch.from_numpy(random_weights(4, 1, 3, 40, 40)).bfloat16()
    rollout = attention_rollout(tuple(weights))
    assert rollout.dtype == np.float64
    assert np.allclose(rollout, attention_rollout(weights.double().numpy()), rtol=0, atol=1e-15)


def test_half_precision_of_numpy_is_summed_in_float64():
    weights = random_weights(4, 1, 3, 40, 40).astype(np.float16)
    rollout = attention_rollout(weights)
    assert np.allclose(rollout, attention_rollout(weights.astype(np.float64)), rtol=0, atol=1e-15)


def test_cross_attention_and_unnormalized_rows_are_refused():
    for wrong, match in (
        (random_weights(3, 5), "self-attention"),
        (2 * random_weights(3, 3), "adds up to 2"),
        (np.full((3, 3), np.nan), "nan"),
    ):
        with pytest.raises(UserError, match=match):
            attention_rollout(wrong)


def test_arrays_of_cupy_stay_on_the_gpu(device):
    weights = random_weights(3, 1, 2, 4, 4)
    rollout = attention_rollout(to_backend(weights, "cupy"))
    assert is_cupy(rollout)
    assert np.allclose(to_numpy(rollout), attention_rollout(weights), rtol=0, atol=1e-15)
    with pytest.raises(UserError, match=r"layer 0\[0, 0\] adds up to 2"):
        attention_rollout(to_backend(2 * weights, "cupy"))
