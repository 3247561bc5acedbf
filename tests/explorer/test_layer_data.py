"""The page of a layer of one's own: its cache, its parameters, its gradients and its source."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from page_steps import Steps

from npformer import nn
from npformer.errors import UserError
from npformer.explorer import explore_layer, layer_data
from npformer.explorer.steps import recording
from npformer.nn.module import Parameter


class ScaleCache(NamedTuple):
    x: np.ndarray
    squared: np.ndarray


class Scale:
    """A layer of one's own, without a base class: y = gain x²."""

    def __init__(self):
        self.gain = Parameter(np.array([2.0, 3.0]))

    def forward(self, x):
        return self.gain.value * x * x, ScaleCache(x, x * x)

    def backward(self, dy, cache):
        self.gain.accumulate((dy * cache.squared).sum(0))
        return 2 * dy * self.gain.value * cache.x


X = np.array([[1.0, -2.0], [0.5, 4.0], [0.0, 1.0]])
DY = np.array([[1.0, 1.0], [0.0, 2.0], [5.0, 0.0]])


def steps_of(layer, *inputs, dy=None):
    return Steps(layer_data.data_of_layer(layer, inputs, dy))


def test_the_arrays_of_a_layer_and_their_gradients():
    layer = Scale()
    steps = steps_of(layer, X, dy=DY)
    assert steps.by_path.keys() == {"gain", "x", "squared", "y"}
    np.testing.assert_array_equal(steps.value("x"), X)
    np.testing.assert_array_equal(steps.grad("x"), 2 * DY * [2, 3] * X)
    np.testing.assert_array_equal(steps.value("squared"), X * X)
    assert steps.grad("squared") is None
    np.testing.assert_array_equal(steps.value("y"), [2, 3] * X * X)
    np.testing.assert_array_equal(steps.grad("y"), DY)
    np.testing.assert_array_equal(steps.grad("gain"), (DY * X * X).sum(0))
    assert not layer.gain.has_grad  # that of the caller
    layer.gain.grad = np.array([7.0, 7.0])  # of an earlier pass: it does not count, and stays
    np.testing.assert_array_equal(steps_of(layer, X, dy=DY).grad("gain"), (DY * X * X).sum(0))
    np.testing.assert_array_equal(layer.gain.grad, [7, 7])
    first, second = (steps_of(layer, X).grad("y") for _ in range(2))  # without dy, it is drawn
    np.testing.assert_array_equal(first, second)
    assert np.abs(first).min() > 0


class Line:
    """A layer of one's own whose parameters are plain arrays: y = x weight + bias."""

    def __init__(self):
        self.weight, self.bias = np.array([[1.0, 2.0, 0.0], [3.0, -1.0, 1.0]]), np.zeros(3)

    def forward(self, x):
        scaled = 2 * x
        return scaled @ self.weight + self.bias, (x, scaled, 3 * x)

    def backward(self, dy, cache):
        self.dweight = cache[1].T @ dy
        return 2 * dy @ self.weight.T


def test_plain_arrays_of_a_layer_are_parameters_and_the_arrays_of_its_cache_have_their_names():
    dy = np.ones((3, 3))
    steps = steps_of(Line(), X, dy=dy)
    assert steps.by_path.keys() == {"x", "weight", "bias", "scaled", "2", "y"}
    np.testing.assert_array_equal(steps.grad("weight"), 2 * X.T @ dy)
    assert steps.grad("bias") is None
    np.testing.assert_array_equal(steps.value("scaled"), 2 * X)
    np.testing.assert_array_equal(steps.value("2"), 3 * X)


class Gated(nn.Module):
    """A layer of one's own that computes something between other layers."""

    def __init__(self):
        self.gate, self.out = nn.Linear(2, 3), nn.Linear(3, 2)

    def forward(self, x):
        g, gate = self.gate.forward(x)
        squared = g * g
        y, out = self.out.forward(squared + 1)
        return y, (gate, out, squared, g)

    def backward(self, dy, cache):
        gate, out, _, g = cache
        return self.gate.backward(self.out.backward(dy, out) * 2 * g, gate)


def test_what_a_layer_computes_between_others_is_recorded():
    steps = steps_of(Gated(), X[None])
    ops = {path: step["op"] for path, (step, _, _) in steps.by_path.items()}
    assert ops["gate.y"] == ops["out.y"] == "add_bias"
    assert ops["out.product"] == "linear"
    assert ops["out.x"] == ops["squared"] == "recorded"
    np.testing.assert_array_equal(steps.value("out.x"), steps.value("squared") + 1)
    assert steps.by_path["out.x"][0]["line"] == "layer"


class Doubled(nn.Linear):
    """A layer of npformer with another forward method."""

    def forward(self, x):
        y, cache = super().forward(x)
        return 2 * y, cache

    def backward(self, dy, cache):
        return super().backward(2 * dy, cache)


@pytest.mark.parametrize("make", [lambda: Doubled(2, 3), lambda: nn.SimilarityAttention(2, 1)])
def test_a_subclass_with_other_methods_is_not_explained_as_its_base_class(make):
    steps = steps_of(make(), X[None])
    outputs = [step for step, _, _ in steps.all if step["path"] == "y"]
    assert [step["op"] for step in outputs] in (["recorded"], [])
    assert not {"scores", "weighted_sum"} & {step["op"] for step, _, _ in steps.all}


class Square(nn.Module):
    """A layer of one's own that keeps an array, and one that calls it and keeps none."""

    def forward(self, x):
        return x * x, (x, x + 1)

    def backward(self, dy, cache):
        return 2 * dy * cache[0]


class Around(nn.Module):
    def __init__(self):
        self.inner = Square()

    def forward(self, x):
        y, cache = self.inner.forward(x)
        return 2 * y, cache

    def backward(self, dy, cache):
        return self.inner.backward(2 * dy, cache)


def test_a_layer_of_ones_own_in_another_shows_what_it_keeps_and_returns():
    steps = steps_of(Around(), X[None])
    assert steps.by_path.keys() == {"x", "inner.1", "inner.y", "y"}
    np.testing.assert_array_equal(steps.value("inner.1"), X + 1)
    np.testing.assert_array_equal(steps.value("inner.y"), X * X)


def test_of_a_batch_the_page_shows_the_arrays():
    layer, x = nn.MultiHeadAttention(8, 2), np.random.default_rng(0).standard_normal((3, 5, 8))
    layer.astype(np.float64)
    steps = steps_of(layer, x)
    assert {step["op"] for step, _, _ in steps.all} == {"parameter", "recorded"}
    assert steps.value("attention.weights").shape == (3, 2, 5, 5)
    y, cache = layer.forward(x)
    np.testing.assert_allclose(steps.grad("query"), layer.backward(steps.grad("y"), cache), rtol=1e-12)
    np.testing.assert_allclose(steps.value("y"), y, rtol=1e-12)
    assert steps.value("query.y").shape == (3, 5, 8)
    assert steps.grad("query.y").shape == (3, 5, 8)


def test_the_source_of_both_passes():
    step = explore_layer(Scale(), X).head["lines"]["layer"]
    assert step["source"].startswith("def forward(self, x):\n    return self.gain.value")
    assert step["gradient_source"].startswith("def backward(self, dy, cache):\n    self.gain.accumulate")
    assert (step["function"], step["gradient_function"]) == ("Scale.forward", "Scale.backward")
    assert step["file"] == "test_layer_data.py"
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert text[step["line"] - 1].strip() == "def forward(self, x):"
    assert text[step["gradient_line"] - 1].strip() == "def backward(self, dy, cache):"


class Wrong(Scale):
    def __init__(self, returned):
        super().__init__()
        self.returned = returned

    def forward(self, x):
        return self.returned


class NoBackward:
    def forward(self, x):
        return x, None


@pytest.mark.parametrize(
    ("layer", "inputs", "message"),
    [
        (Wrong(X), (X,), r"forward of Wrong returns ndarray: return a pair \(y, cache\)"),
        (Wrong((X, X, X)), (X,), r"forward of Wrong returns tuple: return a pair \(y, cache\)"),
        (Wrong((3, None)), (X,), "the output of Wrong is of type int: return an array of floats"),
        (nn.Module(), (X,), "Module has no method forward: write one, as in lesson 0.2"),
        (NoBackward(), (X,), "NoBackward has no method backward: write one, as in lesson 0.2"),
        (Scale, (X,), r"Scale is a class: give a layer of this class, Scale\(...\)"),
        (Scale(), (), "forward of Scale does not take 0 inputs .*'x'.*: give the arrays that it takes"),
        (Scale(), (X, X), "forward of Scale does not take 2 inputs"),
        (Scale(), ([[1.0, 2.0]],), "input 1 of Scale is a list: give an array of NumPy"),
    ],
)
def test_another_form_and_other_inputs_are_refused(layer, inputs, message):
    with pytest.raises(UserError, match=message):
        explore_layer(layer, *inputs)


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(UserError, match=r"dy has shape \(2,\) and the output of Scale \(3, 2\)"):
        explore_layer(Scale(), X, dy=np.ones(2))


def test_too_many_numbers_are_refused(monkeypatch):
    monkeypatch.setattr(recording, "LARGEST_PAGE", 34)
    explore_layer(Scale(), X)  # gain 2 + 2, x 6 + 6, squared 6, y 6 + 6
    monkeypatch.setattr(recording, "LARGEST_PAGE", 33)
    with pytest.raises(UserError, match="of Scale have 34 numbers, and a page has room for 33: give"):
        explore_layer(Scale(), X)
