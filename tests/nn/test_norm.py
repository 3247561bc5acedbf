"""The eps of norms, and LayerNorm and AddNorm without a bias."""

from functools import partial

import numpy as np
import pytest
from tiny import normal

from npformer.nn import AddNorm, BatchNorm, Context, LayerNorm, RMSNorm

F8 = {"dtype": np.float64}


@pytest.mark.parametrize("kind", [LayerNorm, AddNorm, RMSNorm, BatchNorm])
def test_the_eps_of_a_norm_is_that_of_pytorch_unless_it_is_given(kind):
    assert kind(4).eps == 1e-5
    assert kind(4, eps=0.5).eps == 0.5


@pytest.mark.parametrize("kind", [LayerNorm, partial(AddNorm, dropout=0.3)])
def test_a_norm_without_bias_has_a_bias_of_0(kind):
    layers = [kind(6, bias=bias, **F8) for bias in (True, False)]
    assert [name for name, _ in layers[1].named_parameters()] == ["gain"]
    found = []
    for layer in layers:
        layer.gain.value *= normal(6, seed=2)
        inputs = (normal(2, 3, 6),)
        if isinstance(layer, AddNorm):
            inputs += (normal(2, 3, 6, seed=1), Context(train=True, rng=np.random.default_rng(1)))
        y, cache = layer.forward(*inputs)
        found.append([y, layer.backward(normal(2, 3, 6, seed=3), cache), layer.gain.grad])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(other, one)
