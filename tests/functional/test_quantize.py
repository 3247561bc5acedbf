"""Quantized weights: the errors, the groups of the scales, and what is refused."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional import quantize


@pytest.mark.parametrize("size", [1, 1e-3])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_error_of_a_quantized_weight_is_half_a_scale_and_one_column_does_not_touch_the_others(
    bits, size, rng
):
    weight = size * rng.standard_normal((12, 5))
    weight[:, 2] *= 100
    weight[:, 4] = 0
    errors = {}
    for per, shape in (("channel", (1, 5)), ("tensor", (1, 1))):
        found = quantize(weight, bits, per=per)
        assert (found.q.dtype, found.scale.shape) == (np.int8, shape)
        assert abs(found.q.astype(int)).max() == 2 ** (bits - 1) - 1
        errors[per] = abs(found.value - weight)
        assert (errors[per] <= found.scale / 2 + 1e-12).all()
        assert (found.scale <= abs(weight).max()).all() or per == "channel"
        assert not found.value[:, 4].any()
        assert per == "tensor" or found.scale[0, 4] == 1
    assert errors["channel"][:, :2].sum() < errors["tensor"][:, :2].sum() / 1.5


@pytest.mark.parametrize(
    ("weight", "settings", "says"),
    [
        (np.ones((2, 2)), {"bits": 9}, "from 2 to 8"),
        (np.ones((2, 2)), {"bits": 4.0}, "whole number"),
        (np.ones((2, 2)), {"bits": 4, "per": "row"}, "choose one of tensor, channel"),
        (np.full((2, 2), np.nan), {"bits": 4}, "matrix of finite numbers"),
        (np.ones(2), {"bits": 4}, "matrix of finite numbers"),
    ],
)
def test_what_cannot_be_quantized(weight, settings, says):
    with pytest.raises(UserError, match=says):
        quantize(weight, **settings)
