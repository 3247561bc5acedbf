"""Relative positions: the layer, and Transformers that use them."""

import numpy as np
import pytest
from tiny import tiny_config

from npformer import TransformerConfig, UserError
from npformer.functional.masks import causal_mask
from npformer.kernels import plain_pairs
from npformer.nn.attention import MultiHeadAttention, RelativeAttention

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 7, 6))


def heads(make=RelativeAttention, dtype=np.float64, **settings):
    """Return multi-head attention with biases that are not 0."""
    settings = {"max_distance": 2, **settings} if make is RelativeAttention else settings
    layer = make(6, 3, rng=np.random.default_rng(1), dtype=dtype, **settings)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            parameter.value += np.random.default_rng(2).standard_normal(parameter.shape).astype(dtype)
    return layer


# The layer.


def test_there_is_a_vector_for_each_distance():
    layer = heads(max_distance=3)
    assert layer.key_positions.shape == layer.value_positions.shape == (7, 2)


@pytest.mark.parametrize("settings", [{}, {"dropout": 0.4}, {"fused": "qkv", "d_value": 3}], ids=str)
def test_without_vectors_it_is_multi_head_attention_to_the_bit(settings):
    outcomes = []
    with plain_pairs():  # relative attention has no kernel, and a kernel would sum in another order
        for more in ({"make": MultiHeadAttention}, {"on_keys": False, "on_values": False}):
            layer = heads(**more, **settings)
            y, cache = layer.forward(X, mask=causal_mask(7, X), train=True, rng=np.random.default_rng(3))
            outcomes.append([y, layer.backward(np.cos(y), cache), *(p.grad for p in layer.parameters())])
    for theirs, ours in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: heads().forward(X, X), "separate keys were given: use MultiHeadAttention"),
        (lambda: heads().project_memory(X), "separate keys were given: use MultiHeadAttention"),
        (lambda: RelativeAttention(7, 3), "d_model 7 is not divisible by 3 heads"),
    ],
)
def test_invalid_inputs_are_refused(mistake, message):
    with pytest.raises(UserError, match=message):
        mistake()


# Transformers.


def test_settings_of_a_configuration():
    assert TransformerConfig().max_distance == 16
    assert not tiny_config(positions="relative").adds_positions
    assert tiny_config(positions="learned").adds_positions
    assert tiny_config(positions="relative", d_model=9, n_heads=3).d_model == 9  # no sinusoids
