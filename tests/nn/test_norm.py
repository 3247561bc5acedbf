"""The eps of RMSNorm, and LayerNorm without a bias."""

import numpy as np

from npformer.nn import LayerNorm, RMSNorm

F8 = {"dtype": np.float64}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_eps_of_the_layer():
    zeros = np.zeros((1, 4))
    assert not RMSNorm(4, **F8)(zeros).any()
    assert RMSNorm(1, eps=3.0, **F8)(np.array([[1.0]])) == 0.5


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
