"""Keys and values whose inputs have other widths than the queries."""

import numpy as np
import pytest

from npformer import MultiHeadAttention, gradcheck
from npformer.errors import UserError
from npformer.functional.packing import find_tokens, pack
from npformer.nn.context import AttentionMask

rng = np.random.default_rng(0)
QUERY, KEY, VALUE = (rng.standard_normal(shape) for shape in [(2, 3, 6), (2, 4, 3), (2, 4, 5)])


def test_the_gradients():
    layer = MultiHeadAttention(6, 2, kdim=3, vdim=5, dtype=np.float64)
    assert [p.shape for p in (layer.query.weight, layer.key.weight, layer.value.weight)] == [
        (6, 6),
        (3, 6),
        (5, 6),
    ]
    assert gradcheck(layer, QUERY, KEY, VALUE).ok


def test_the_shapes_are_checked():
    layer = MultiHeadAttention(6, 2, kdim=3, vdim=5, dtype=np.float64)
    with pytest.raises(UserError, match=r"takes key of shape \(B, T, 3\) and got \(2, 3, 6\)"):
        layer(QUERY)
    with pytest.raises(UserError, match=r"takes value of shape \(B, T, 5\) and got \(2, 4, 3\)"):
        layer(QUERY, KEY)


@pytest.mark.parametrize(("fused", "width"), [("qkv", "kdim"), ("kv", "vdim")])
def test_fused_projections_have_one_input(fused, width):
    with pytest.raises(UserError, match=rf'projections fused as "{fused}" have one input, .*{width} 3'):
        MultiHeadAttention(6, 2, fused=fused, **{width: 3})
    assert MultiHeadAttention(6, 2, fused=fused, **{width: 6})(QUERY).shape == (2, 3, 6)


def test_keys_may_be_packed_where_queries_are_not():
    layer = MultiHeadAttention(6, 2, dtype=np.float64)
    memory, ids = rng.standard_normal((2, 4, 6)), np.array([[5, 6, 7, 0], [8, 0, 0, 0]])
    allowed, packing = (ids > 0)[:, None, None], find_tokens(ids, 0)
    packed = layer.forward(QUERY, pack(memory, packing), mask=AttentionMask(allowed, key_packing=packing))[0]
    np.testing.assert_allclose(packed, layer.forward(QUERY, memory, mask=allowed)[0], rtol=1e-12)
