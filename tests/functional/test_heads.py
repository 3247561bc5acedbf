"""Splitting into heads, and the settings of multi-head attention."""

import numpy as np
import pytest
from tiny import normal

from npformer import MultiHeadAttention, UserError


@pytest.mark.parametrize("fused", ["kv", "qkv"])
def test_fused_projections_give_the_same_output_and_gradients(fused):
    """The fused weights are those of the separate projections side by side."""
    apart = MultiHeadAttention(8, 2, d_head=3, d_value=5, dtype=np.float64)
    beside = MultiHeadAttention(8, 2, d_head=3, d_value=5, fused=fused, dtype=np.float64)
    state = {name: normal(*value.shape, seed=i) for i, (name, value) in enumerate(apart.state_dict().items())}
    apart.load_state_dict(state)
    beside.load_state_dict(side_by_side(state, fused))
    x, dy = normal(2, 4, 8), normal(2, 4, 8, seed=1)
    grads = []
    for layer in (apart, beside):
        y, cache = layer.forward(x)
        dx = layer.backward(dy, cache)
        own = {name: parameter.grad for name, parameter in layer.named_parameters()}
        grads.append((y, dx, side_by_side(own, fused) if layer is apart else own))
    for one, other in zip(grads[0][:2], grads[1][:2], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-12)
    assert grads[0][2].keys() == grads[1][2].keys()
    for name, grad in grads[0][2].items():
        np.testing.assert_allclose(grads[1][2][name], grad, rtol=1e-10, atol=1e-12)


def side_by_side(arrays, fused):
    """Join query, key and value arrays as fused="kv" or "qkv" needs them."""
    parts = {"kv": ("key", "value"), "qkv": ("query", "key", "value")}[fused]
    joined = {name: array for name, array in arrays.items() if name.split(".")[0] not in parts}
    for last in ("weight", "bias"):
        pieces = [arrays[f"{part}.{last}"] for part in parts]
        joined["_".join(parts) + f".{last}"] = np.concatenate(pieces, -1)
    return joined


@pytest.mark.parametrize(("fused", "arrays"), [("qkv", 2), ("qkv", 3), ("kv", 3)])
def test_fused_projections_refuse_separate_inputs(fused, arrays):
    layer = MultiHeadAttention(6, 2, fused=fused, dtype=np.float64)
    with pytest.raises(UserError, match=f'fused as "{fused}" take . of query, key and value'):
        layer.forward(*[normal(1, 4, 6, seed=i) for i in range(arrays)])


def test_values_without_keys_are_refused():
    with pytest.raises(UserError, match="value was given without key"):
        MultiHeadAttention(6, 2).forward(normal(1, 4, 6), None, normal(1, 4, 6))
