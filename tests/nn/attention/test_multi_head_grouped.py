"""Attention whose query heads share keys and values, with rotary positions, a window and a KV cache."""

import itertools

import numpy as np
import pytest

from npformer import MultiHeadAttention, UserError
from npformer.functional import repeat_heads
from npformer.functional.masks import causal_mask
from npformer.kernels import plain_pairs
from npformer.nn import RotaryPositions
from npformer.nn.attention import RelativeAttention, SimilarityAttention

F8 = {"dtype": np.float64}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def heads(kind=MultiHeadAttention, d_model=8, n_heads=4, **settings):
    """Return attention with biases that are not 0."""
    layer = kind(d_model, n_heads, rng=np.random.default_rng(1), **F8, **settings)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            parameter.value += normal(*parameter.shape, seed=2)
    return layer


def test_a_head_is_repeated_for_neighbouring_query_heads():
    x = normal(2, 2, 5, 3)
    y, _ = repeat_heads(x, 3)
    assert y.shape == (2, 6, 5, 3)
    for h in range(6):
        np.testing.assert_array_equal(y[:, h], x[:, h // 3])
    assert repeat_heads(x, 1)[0] is x


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


@pytest.mark.parametrize("fused", ["no", "kv", "qkv"])
def test_with_as_many_key_heads_as_query_heads_nothing_changes(fused):
    """Parameters, output and gradients are equal to the bit."""
    x = normal(2, 5, 8).astype(np.float32)
    outcomes = []
    for settings in ({}, {"n_kv_heads": 4}):
        layer = MultiHeadAttention(8, 4, fused=fused, rng=np.random.default_rng(1), **settings)
        y, cache = layer.forward(x)
        outcomes.append([layer.backward(np.cos(y), cache), y, *(p.grad for p in layer.parameters())])
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_kv_cache_of_8_heads_on_2_takes_a_quarter():
    sizes = []
    for n_kv_heads in (8, 2):
        layer = heads(d_model=32, n_heads=8, n_kv_heads=n_kv_heads)
        _, kv_cache = layer.decode_step(normal(3, 5, 32), mask=causal_mask(5, np.zeros(1)))
        _, kv_cache = layer.decode_step(normal(3, 1, 32), kv_cache)
        sizes.append(kv_cache.k.nbytes + kv_cache.v.nbytes)
        assert (kv_cache.k.shape, kv_cache.length) == ((3, n_kv_heads, 6, 4), 6)
    assert sizes == [2 * 3 * 8 * 6 * 4 * 8, sizes[0] // 4]


@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("steps", [[1] * 7, [4, 1, 1, 1], [2, 3, 2]])
def test_decoding_with_rotary_positions_shared_heads_and_a_window(window, layout, steps):
    """Steps of one or several positions equal the whole sentence."""
    layer = heads(n_kv_heads=2, d_head=6, rotary=RotaryPositions(7, 6, layout=layout, **F8))
    x = normal(2, 7, 8)
    whole, _ = layer.forward(x, mask=causal_mask(7, x, window=window))
    kv_cache = None
    for start, n in zip(itertools.accumulate([0, *steps[:-1]]), steps, strict=True):
        mask = causal_mask(n, x, window=window, start=start)
        y, kv_cache = layer.decode_step(x[:, start : start + n], kv_cache, mask)
        np.testing.assert_allclose(y, whole[:, start : start + n], rtol=1e-11, atol=1e-13)
    if window is None and n == 1:  # the default of a single step is no mask
        without_mask, _ = layer.decode_step(x[:, -1:], type(kv_cache)(*(a[:, :, :-1] for a in kv_cache)))
        np.testing.assert_array_equal(without_mask, y)


def test_values_are_not_rotated_and_rotated_keys_are_cached():
    rotary = RotaryPositions(5, 2, **F8)
    layer, x = heads(rotary=rotary), normal(1, 5, 8)
    _, cache = layer.forward(x)
    (q, k, v), _ = layer.project(x, x, x)
    np.testing.assert_array_equal(cache.attention.q, rotary.forward(q)[0])
    np.testing.assert_array_equal(cache.attention.v, v)
    _, kv_cache = layer.decode_step(x)
    np.testing.assert_array_equal(kv_cache.k, rotary.forward(k)[0])
    np.testing.assert_array_equal(kv_cache.v, v)


def test_the_output_does_not_depend_on_the_first_position():
    """All positions of the same sentence are shifted by 20."""
    layer, x = heads(rotary=RotaryPositions(30, 2, **F8)), normal(2, 5, 8)
    (q, k, v), _ = layer.project(x, x, x)
    outputs = [layer.attend(*layer.rotate(q, k, start)[:2], v)[0] for start in (0, 20)]
    np.testing.assert_allclose(outputs[1], outputs[0], rtol=1e-11)


def test_kernels_and_plain_pairs_agree():
    layer, x = heads(n_kv_heads=2, rotary=RotaryPositions(6, 2, **F8)), normal(2, 6, 8)
    mask = causal_mask(6, x, window=3)
    y, cache = layer.forward(x, mask=mask)
    dx = layer.backward(np.cos(y), cache)
    with plain_pairs():
        expected, cache = layer.forward(x, mask=mask)
        expected_dx = layer.backward(np.cos(y), cache)
    np.testing.assert_allclose(y, expected, rtol=1e-12)
    np.testing.assert_allclose(dx, expected_dx, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("n_kv_heads", [0, 3, 8])
def test_heads_that_cannot_be_shared_equally_are_refused(n_kv_heads):
    with pytest.raises(UserError, match=f"4 query heads cannot share {n_kv_heads} heads of keys and values"):
        MultiHeadAttention(8, 4, n_kv_heads=n_kv_heads)


def test_rotary_positions_refuse_the_keys_of_another_sentence():
    layer, x = heads(rotary=RotaryPositions(5, 2, **F8)), normal(1, 5, 8)
    for call in (lambda: layer.forward(x, x), lambda: layer.project_memory(x)):
        with pytest.raises(UserError, match="rotary positions need queries and keys of one sentence"):
            call()
