"""The calls of layers that the explorer watches: their arrays, their gradients and their order."""

import numpy as np
import pytest

from npformer import nn
from npformer.explorer.call_tree import calls_in, watched


class Twice(nn.Module):
    """A layer that calls another one twice."""

    def __init__(self):
        self.layers = [nn.Linear(2, 2, rng=np.random.default_rng(0), dtype=np.float64)]

    def forward(self, x):
        h, first = self.layers[0].forward(x)
        y, second = self.layers[0].forward(h)
        return y, (first, second)

    def backward(self, dy, cache):
        first, second = cache
        dh = self.layers[0].backward(dy, second)
        return self.layers[0].backward(dh, first)


def test_the_calls_of_a_pass():
    layer, x, dy = Twice(), np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])
    with watched(layer) as root:
        y, cache = layer.forward(x)
        dx = layer.backward(dy, cache)
    (call,) = root.children
    assert [each.path for each in calls_in(root)] == ["", "layers.0", "layers.0"]
    assert (call.module, call.output, call.cache) == (layer, y, cache)
    assert call.d_output is dy
    assert call.d_inputs is dx
    first, second = call.children
    assert first.inputs[0] is x
    assert second.inputs[0] is first.output
    assert second.output is y
    weight = layer.layers[0].weight.value
    np.testing.assert_array_equal(second.d_inputs, dy @ weight.T)
    assert first.d_output is second.d_inputs
    assert call.child(layer.layers[0]) is first
    assert call.child(layer) is None


@pytest.mark.parametrize("fails", [False, True])
def test_the_layers_get_their_methods_back(fails):
    layer = Twice()
    with watched(layer) as root:
        if fails:
            with pytest.raises(ValueError, match="Linear"):
                layer.forward(np.ones((1, 3)))
        assert "forward" in vars(layer)
    assert len(root.children) == fails
    for module in layer.modules():
        assert not {"forward", "backward"} & vars(module).keys()
