"""Tests of F64: the gate and its activation."""

import pytest
from figure_cells import texts

from npformer.learn.figures import draw
from npformer.plots import text_problems


@pytest.mark.parametrize(("activation", "name"), [("swiglu", "swish(gate)"), ("geglu", "gelu(gate)")])
def test_the_gate_has_the_name_of_its_activation(activation, name):
    drawing = draw("F64", activation=activation)
    assert name in texts(drawing.figure)
    assert text_problems(drawing.figure) == []
