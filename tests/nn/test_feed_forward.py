"""The gated feed-forward network computed with loops, and its settings."""

import math

import numpy as np
import pytest

from npformer import UserError
from npformer.nn import FeedForward, GatedFeedForward

F8 = {"dtype": np.float64}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def swish(x):
    return x / (1 + math.exp(-x))


def gelu(x):
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


@pytest.mark.parametrize(("activation", "f"), [("swiglu", swish), ("geglu", gelu)])
def test_the_gated_network_computed_with_loops(activation, f):
    layer, x = GatedFeedForward(3, 4, activation=activation, **F8), normal(2, 3)
    y = layer(x)
    gate, value, outer = (part.weight.value for part in (layer.gate, layer.value, layer.outer))
    for row in range(2):
        hidden = [f(x[row] @ gate[:, j]) * (x[row] @ value[:, j]) for j in range(4)]
        for d in range(3):
            expected = sum(hidden[j] * outer[j, d] for j in range(4))
            assert y[row, d] == pytest.approx(expected, rel=1e-12)


def test_biases_are_optional():
    assert [name for name, _ in GatedFeedForward(3, 4).named_parameters()] == [
        "gate.weight",
        "value.weight",
        "outer.weight",
    ]
    assert len(GatedFeedForward(3, 4, bias=True).parameters()) == 6
    assert len(FeedForward(3, 4, bias=False).parameters()) == 2


def test_two_thirds_of_the_hidden_width_have_as_many_weights():
    assert GatedFeedForward(6, 8).count_parameters() == FeedForward(6, 12, bias=False).count_parameters()


def test_an_unknown_gated_activation_is_refused():
    with pytest.raises(UserError, match="activation is 'swish': choose one of swiglu, geglu"):
        GatedFeedForward(3, 4, activation="swish")
