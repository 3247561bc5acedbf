"""Attention whose query heads share keys and values, also with rotary positions."""

import numpy as np
import pytest
from tiny import normal

from npformer import MultiHeadAttention, UserError
from npformer.nn import RotaryPositions
from npformer.nn.attention import RelativeAttention, SimilarityAttention

F8 = {"dtype": np.float64}


def heads(kind=MultiHeadAttention, d_model=8, n_heads=4, **settings):
    """Return attention with biases that are not 0."""
    layer = kind(d_model, n_heads, rng=np.random.default_rng(1), **F8, **settings)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            parameter.value += normal(*parameter.shape, seed=2)
    return layer


def widened(layer, like):
    """Return the state of a layer with one key head for each query head, equal within each group."""
    state = layer.state_dict()
    n_repeats = layer.n_heads // layer.n_kv_heads
    for name, width in (("key", layer.d_head), ("value", layer.d_value)):
        for part in ("weight", "bias"):
            array = state[f"{name}.{part}"]
            groups = array.reshape(*array.shape[:-1], layer.n_kv_heads, width)
            state[f"{name}.{part}"] = np.repeat(groups, n_repeats, axis=-2).reshape(*array.shape[:-1], -1)
    assert {name: array.shape for name, array in state.items()} == {
        name: parameter.shape for name, parameter in like.named_parameters()
    }
    return state


@pytest.mark.parametrize("n_kv_heads", [1, 2])
@pytest.mark.parametrize("kind", [MultiHeadAttention, SimilarityAttention, RelativeAttention])
def test_sharing_equals_separate_heads_with_equal_weights(kind, n_kv_heads):
    """The outputs are equal, and the gradient of a shared weight is the sum over its copies."""
    shared, apart = heads(kind, n_kv_heads=n_kv_heads, d_value=3), heads(kind, d_value=3)
    apart.load_state_dict(widened(shared, apart))
    x, dy, mask = normal(2, 5, 8), normal(2, 5, 8, seed=3), np.tri(5, dtype=bool)
    (y, cache), (expected, expected_cache) = (layer.forward(x, mask=mask) for layer in (shared, apart))
    np.testing.assert_allclose(y, expected, rtol=1e-12)
    dx, expected_dx = shared.backward(dy, cache), apart.backward(dy, expected_cache)
    np.testing.assert_allclose(dx, expected_dx, rtol=1e-11, atol=1e-13)
    for name, width in (("key", shared.d_head), ("value", shared.d_value)):
        copies = getattr(apart, name).weight.grad.reshape(8, n_kv_heads, 4 // n_kv_heads, width)
        np.testing.assert_allclose(
            getattr(shared, name).weight.grad, copies.sum(2).reshape(8, -1), rtol=1e-11, atol=1e-13
        )


@pytest.mark.parametrize("n_kv_heads", [3, 8])
def test_heads_that_cannot_be_shared_equally_are_refused(n_kv_heads):
    with pytest.raises(UserError, match=f"4 query heads cannot share {n_kv_heads} heads of keys and values"):
        MultiHeadAttention(8, 4, n_kv_heads=n_kv_heads)


def test_rotary_positions_refuse_the_keys_of_another_sentence():
    layer, x = heads(rotary=RotaryPositions(5, 2, **F8)), normal(1, 5, 8)
    for call in (lambda: layer.forward(x, x), lambda: layer.project_memory(x)):
        with pytest.raises(UserError, match="rotary positions need queries and keys of one sentence"):
            call()
