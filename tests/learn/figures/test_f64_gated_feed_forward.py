"""Tests of F64: the gate and its activation."""

import pytest

from npformer.errors import UserError
from npformer.learn.figures import draw
from npformer.plots import text_problems


def texts(figure):
    """Return all texts of a figure."""
    return [text.get_text() for ax in figure.axes for text in ax.texts]


@pytest.mark.parametrize(("activation", "name"), [("swiglu", "swish(gate)"), ("geglu", "gelu(gate)")])
def test_the_gate_has_the_name_of_its_activation(activation, name):
    drawing = draw("F64", activation=activation)
    assert name in texts(drawing.figure)
    assert text_problems(drawing.figure) == []


def test_impossible_settings_are_refused():
    with pytest.raises(UserError, match="relu"):
        draw("F64", activation="relu")
