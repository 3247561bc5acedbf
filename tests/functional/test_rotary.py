"""Rotary positions: the formula, scores that depend on distances only, and the layer."""

import math

import numpy as np
import pytest
from tiny import normal

from npformer import UserError
from npformer.functional import rotary_table, rotate
from npformer.functional.rotary import Llama3Scaling
from npformer.nn import RotaryPositions

LAYOUTS = ("halves", "interleaved")
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def rotated(x, positions, layout="halves", base=10000.0):
    """Return the vectors x (T, K) rotated by their positions (T,)."""
    y, _ = rotate(x, *rotary_table(np.asarray(positions), x.shape[-1], base), layout)
    return y


@every_layout
def test_rotation_computed_with_loops(layout):
    x, positions, base = normal(3, 6), [0, 4, 11], 50.0
    y = rotated(x, positions, layout, base)
    for row, t in enumerate(positions):
        for i in range(3):
            a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + 3)
            angle = t * base ** (-2 * i / 6)
            cos, sin = math.cos(angle), math.sin(angle)
            assert y[row, a] == pytest.approx(x[row, a] * cos - x[row, b] * sin, rel=1e-13)
            assert y[row, b] == pytest.approx(x[row, a] * sin + x[row, b] * cos, rel=1e-13)


def test_the_scaling_of_llama_3_computed_with_loops():
    """The angles of 16 pairs, of which some are kept, some divided by the factor and some between the two."""
    scaling = Llama3Scaling(factor=4.0, low=1.0, high=8.0, original_context=100)
    plain, kinds = rotary_table(np.array([1]), 32, 50.0), []
    cos, sin = rotary_table(np.array([1]), 32, 50.0, scaling)
    for i in range(16):
        speed = 50.0 ** (-2 * i / 32)
        wavelength = 2 * math.pi / speed
        if wavelength < 100 / 8:
            kinds.append("kept")
        elif wavelength > 100 / 1:
            kinds.append("divided")
            speed /= 4
        else:
            kinds.append("between")
            share = (100 / wavelength - 1) / (8 - 1)
            speed = (1 - share) * speed / 4 + share * speed
        assert cos[0, i] == pytest.approx(math.cos(speed), rel=1e-13)
        assert sin[0, i] == pytest.approx(math.sin(speed), rel=1e-13)
    assert set(kinds) == {"kept", "divided", "between"}
    assert np.array_equal(sin[0, 0], plain[1][0, 0])


def test_a_base_below_1_is_a_base():
    cos, _ = rotary_table(np.array([1]), 4, 0.25)
    np.testing.assert_allclose(cos[0], [math.cos(1), math.cos(2)], rtol=1e-14)


def test_the_layer_scales_its_angles():
    scaling = Llama3Scaling(original_context=16)
    layer = RotaryPositions(9, 8, scaling=scaling, dtype=np.float64)
    np.testing.assert_array_equal(layer.cos, rotary_table(np.arange(9), 8, scaling=scaling)[0])
    assert np.abs(layer.cos - RotaryPositions(9, 8, dtype=np.float64).cos).max() > 0.01


def test_the_layer_continues_at_a_later_start():
    layer = RotaryPositions(9, 4, layout="interleaved", base=30.0, dtype=np.float64)
    x = normal(2, 3, 9, 4)
    whole, _ = layer.forward(x)
    np.testing.assert_array_equal(whole[1, 2], rotated(x[1, 2], np.arange(9), "interleaved", 30.0))
    part, _ = layer.forward(x[:, :, 3:7], start=3)
    np.testing.assert_array_equal(part, whole[:, :, 3:7])


def test_each_sentence_can_have_a_start_of_its_own():
    layer, x = RotaryPositions(9, 4, dtype=np.float64), normal(2, 3, 2, 4)
    y, _ = layer.forward(x, start=np.array([5, 0]))
    np.testing.assert_array_equal(y[:1], layer.forward(x[:1], start=5)[0])
    np.testing.assert_array_equal(y[1:], layer.forward(x[1:])[0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: rotary_table(np.arange(3), 5), "the width of a head is 5: make it even"),
        (
            lambda: rotary_table(np.arange(3), 4, 0.0),
            "the base of rotary positions is 0.0: it must be a number",
        ),
        (lambda: RotaryPositions(3, 4, layout="half"), "layout is 'half': choose one of halves, interleaved"),
        (lambda: rotate(np.ones((1, 4)), 1.0, 0.0, "half"), "layout is 'half': choose one of halves, interl"),
        (
            lambda: RotaryPositions(3, 4).forward(np.ones((2, 1, 2, 4)), np.array([0, 2])),
            "RotaryPositions has 3 positions and 4 are needed",
        ),
        (
            lambda: RotaryPositions(3, 4).forward(np.ones((1, 1, 2, 6))),
            r"RotaryPositions takes x of shape \(B, H, T, 4\) and got \(1, 1, 2, 6\)",
        ),
    ],
)
def test_impossible_settings(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()
