"""The eps of norms, LayerNorm and AddNorm without a bias, and the inputs that AddNorm refuses."""

import numpy as np
import pytest
from tiny import normal

from npformer.errors import UserError
from npformer.nn import AddNorm, BatchNorm, Context, LayerNorm, RMSNorm

F8 = {"dtype": np.float64}


@pytest.mark.parametrize("kind", [LayerNorm, AddNorm, RMSNorm, BatchNorm])
def test_the_eps_of_a_norm_is_that_of_pytorch_unless_it_is_given(kind):
    assert kind(4).eps == 1e-5
    assert kind(4, eps=0.5).eps == 0.5


def test_a_layer_norm_without_bias_has_a_bias_of_0():
    x, dy = normal(5, 4), normal(5, 4, seed=1)
    layers = [LayerNorm(4, bias=bias, **F8) for bias in (True, False)]
    assert [name for name, _ in layers[1].named_parameters()] == ["gain"]
    for layer in layers:
        layer.gain.value[:] = normal(4, seed=2)
    (one, cache), (other, other_cache) = (layer.forward(x) for layer in layers)
    np.testing.assert_array_equal(other, one)
    np.testing.assert_array_equal(layers[1].backward(dy, other_cache), layers[0].backward(dy, cache))
    np.testing.assert_array_equal(layers[1].gain.grad, layers[0].gain.grad)


def test_the_norm_of_a_sum_without_bias_has_a_bias_of_0():
    x, h, dy = normal(3, 2, 3, 6)
    layers = [AddNorm(6, dropout=0.3, bias=bias, **F8) for bias in (True, False)]
    assert [name for name, _ in layers[1].named_parameters()] == ["gain"]
    for layer in layers:
        layer.gain.value *= 0.7
    (one, cache), (other, other_cache) = (
        layer.forward(x, h, Context(train=True, rng=np.random.default_rng(1))) for layer in layers
    )
    np.testing.assert_array_equal(other, one)
    np.testing.assert_array_equal(layers[1].backward(dy, other_cache), layers[0].backward(dy, cache))
    np.testing.assert_array_equal(layers[1].gain.grad, layers[0].gain.grad)


@pytest.mark.parametrize("wrong", [np.ones((2, 3, 5)), np.ones((2, 3, 6), int), [[0.5] * 6]])
def test_the_norm_of_a_sum_refuses_other_inputs(wrong):
    layer, right = AddNorm(6, **F8), normal(2, 3, 6)
    for name, inputs in {"x": (wrong, right), "h": (right, wrong)}.items():
        with pytest.raises(UserError, match=rf"^AddNorm takes .*\b{name} (is|has|of)\b"):
            layer.forward(*inputs)
