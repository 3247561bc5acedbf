"""The gated feed-forward network and its settings."""

import numpy as np
import pytest
from tiny import normal

import npformer.functional as F
from npformer import UserError
from npformer.nn import FeedForward, GatedFeedForward

F8 = {"dtype": np.float64}


@pytest.mark.parametrize("activation", ["swiglu", "geglu"])
def test_the_gated_network_multiplies_two_maps_before_the_third(activation):
    layer, x = GatedFeedForward(3, 4, activation=activation, **F8), normal(2, 3)
    gate, value, outer = (part.weight.value for part in (layer.gate, layer.value, layer.outer))
    hidden, _ = getattr(F, activation)(x @ gate, x @ value)
    np.testing.assert_allclose(layer(x), hidden @ outer, rtol=1e-12)


def test_biases_are_optional():
    assert [name for name, _ in GatedFeedForward(3, 4).named_parameters()] == [
        "gate.weight",
        "value.weight",
        "outer.weight",
    ]
    assert len(GatedFeedForward(3, 4, bias=True).parameters()) == 6
    assert len(FeedForward(3, 4, bias=False).parameters()) == 2


def test_an_unknown_gated_activation_is_refused():
    with pytest.raises(UserError, match="activation is 'swish': choose one of swiglu, geglu"):
        GatedFeedForward(3, 4, activation="swish")
