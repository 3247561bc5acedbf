"""Tests of Luong's attention in F55, F56 and F57: the figures show the numbers that the layers computed."""

import math
import re

import numpy as np
import pytest
from figure_cells import picture, texts

from npformer.learn.figures.f55_to_f57_luong import translation

MONOTONIC = {"kind": "local-m", "reach": 1}


def last_step(kind="global", reach=2):
    """Return the last step of the figures' translation, computed with one kind of attention."""
    return translation(kind, None if kind == "global" else reach)


# The tensors.


def test_the_last_step_can_be_computed_from_the_layers():
    """Compute the last step again from the parts of the layers."""
    step = last_step()
    assert step.source == ["the", "dog", "didn't", "cross", "the", "road", "</S>"]
    assert step.target == ["<S>", "le", "chien"]
    assert step.vocabulary == ["le", "chien", "</S>"]
    scores = step.states[-1] @ step.attention.similarity.weight.value @ step.memory.T
    weights = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(step.weights, weights, rtol=1e-5)
    np.testing.assert_allclose(step.context, weights @ step.memory, rtol=1e-4, atol=1e-6)
    assert step.probabilities.sum() == pytest.approx(1, rel=1e-6)
    assert np.ptp(step.weights) > 0.2  # the example is not trivial


def test_a_window_hides_the_tokens_outside():
    step = last_step("local-p")
    inside = np.abs(np.arange(7) - step.position) <= 2
    assert ((step.weights > 0) == inside).all()
    assert 0 < step.weights.sum() < 1


# F55 and F56.


def numbers_of(figure):
    """Return every number in the figure's cells and above its bars."""
    return [float(t.replace("−", "-")) for t in texts(figure) if re.fullmatch(r"−?\d*\.?\d+", t)]


@pytest.mark.parametrize(
    ("id", "changes", "kind", "reach"),
    [("F55", {}, "global", 2), ("F56", {}, "local-p", 2), ("F56", MONOTONIC, "local-m", 1)],
)
def test_the_numbers_are_those_of_the_tensors(id, changes, kind, reach):
    step = last_step(kind, reach)
    numbers = numbers_of(picture(id, **changes))
    shown = [step.memory, step.states, step.context, step.attentional, step.probabilities, step.weights]
    expected = [round(float(value), 2) for values in shown for value in np.ravel(values)]
    assert sorted(map(abs, numbers)) == pytest.approx(sorted(map(abs, expected)), abs=0.0051)
    assert sum(numbers) == pytest.approx(sum(expected), abs=0.2)


# F57.


@pytest.mark.parametrize("reach", [1, 2, 3.5])
def test_the_gaussian_of_the_paper(reach):
    """Check exp(-1/2) = .6065 at D / 2 and exp(-2) = .1353 at D for every D."""
    figure = picture("F57", reach=reach)
    assert {".6065 at D / 2", ".1353 at D"} <= set(texts(figure))
    curve = figure.axes[0].lines[0]
    x, y = curve.get_xdata(), curve.get_ydata()
    p = last_step("local-p", reach).position
    np.testing.assert_allclose(y, [math.exp(-((s - p) ** 2) / (2 * (reach / 2) ** 2)) for s in x], rtol=1e-12)
