"""What fooled the checker once: right layers that it refused, and wrong ones that it accepted or misnamed."""

import os
import warnings

import numpy as np
import pytest
from refused import refused

from npformer import Parameter
from npformer.checking import gradcheck
from npformer.checking.check import generator_of
from npformer.checking.check_target import CheckTarget
from npformer.checking.draw import Options, make_draw

SEEDS = range(8 if os.environ.get("NPFORMER_NIGHTLY") else 2)


class Scaled:
    """y = x w with one parameter, whose gradient a function changes."""

    def __init__(self, change, n):
        self.w, self.change = Parameter(np.arange(1.0, n + 1)), change

    def forward(self, x):
        return x * self.w.value, x

    def backward(self, dy, x):
        self.w.grad += self.change((dy * x).sum(0))
        return dy * self.w.value


@pytest.mark.parametrize("seed", range(8))
def test_a_reversed_gradient_is_named_whatever_the_direction(seed, rng):
    layer = Scaled(lambda dw: dw[::-1], 3)  # half of all directions ±1 are equal at both ends
    assert "w" in {row.tensor for row in gradcheck(layer, rng.standard_normal((4, 3)), seed=seed).failures}


def test_the_entry_of_a_nan(rng):
    layer = Scaled(lambda dw: np.where(np.arange(5) == 3, np.nan, dw), 5)
    row = next(row for row in gradcheck(layer, rng.standard_normal((4, 5))).failures if row.tensor == "w")
    assert row.entry == (3,)
    assert "NaN" in row.diagnosis


def test_a_small_entry_with_the_wrong_sign_is_not_taken_for_float32(rng):
    x = rng.standard_normal((4, 3)) * [1e6, 1, 1]
    layer = Scaled(lambda dw: dw * [1, 1, -1], 3)
    row = next(row for row in gradcheck(layer, x).failures if row.tensor == "w")
    assert row.entry == (2,)
    assert "float32" not in row.diagnosis


def test_arrays_that_take_part_and_are_not_checked(rng):
    class Table:
        def __init__(self):
            self.table, self.unused = np.ones(3), np.ones(5)

        def forward(self, x):
            return x * self.table, None

        def backward(self, dy, cache):
            return dy * self.table

    notes = " ".join(gradcheck(Table(), rng.standard_normal((2, 3))).notes)
    assert notes.startswith("1 tensor checked, with inputs of these shapes alone: x (2, 3)")
    assert "not checked: table (3,)" in notes
    assert "unused" not in notes


@pytest.mark.parametrize("seed", range(3))
def test_dy_never_equals_an_input_of_the_same_seed(seed):
    """The L2 norm is right. For dy = x its dx is 0, and so is the wrong dx of the second pair."""
    x = np.random.default_rng(seed).standard_normal((2, 5))

    def norm(x):
        return np.sqrt((x * x).sum(-1, keepdims=True))

    def unit(x):
        return (x / norm(x), x)

    def right(dy, x):
        return dy / norm(x) - x * (x * dy).sum(-1, keepdims=True) / norm(x) ** 3

    assert gradcheck((unit, right), x, seed=seed).ok
    assert not gradcheck((unit, lambda dy, x: 0 * dy), x, seed=seed).ok
    target = CheckTarget((identity, right), (x,), {}, randomize=True, rng=np.random.default_rng(seed))
    assert not np.allclose(make_draw(target, {"x": "complex"}, Options(), generator_of(seed)).dy, x)


def identity(x):
    return 1.0 * x, x


def softmax_sum(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    return p.sum(-1), p


def softmax_sum_backward(dy, p):
    dp = np.broadcast_to(dy[..., None], p.shape)
    return p * (dp - (dp * p).sum(-1, keepdims=True))


ZERO_GRADIENTS = {
    "softmax, then sum": (softmax_sum, softmax_sum_backward),
    "centre, then sum": (
        lambda x: ((x - x.mean(-1, keepdims=True)).sum(-1), x),
        lambda dy, x: (lambda d: d - d.mean(-1, keepdims=True))(dy[..., None] * np.ones(x.shape)),
    ),
}


@pytest.mark.parametrize("name", ZERO_GRADIENTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_gradient_that_is_zero_in_exact_arithmetic(name, seed):
    x = np.random.default_rng(seed).standard_normal((3, 5))
    f, f_backward = ZERO_GRADIENTS[name]
    assert gradcheck((f, f_backward), x, seed=seed).ok
    wrong = (f, lambda dy, cache: f_backward(dy, cache) + 1e-6 * dy[..., None])
    report = gradcheck(wrong, x, seed=seed)
    assert "every entry should be 0" in report.worst.diagnosis, str(report)


def test_a_forward_pass_that_never_repeats(rng):
    calls = []
    pair = (lambda x: (x * (calls.append(0) or len(calls)), None), lambda dy, cache: dy)
    with refused("two forward passes with the same input differ, and no random"):
        gradcheck(pair, rng.standard_normal(3))


WITHOUT_COMPLEX = {
    "abs": (lambda x: (np.abs(x), x), lambda dy, x: dy * np.sign(x)),
    "sign": (lambda x: (x * np.sign(x), x), lambda dy, x: dy * np.sign(x)),
    "table": (lambda x: (np.interp(x, [-4, 0, 4], [0, 1, 5]), x), lambda dy, x: dy * (1 - 0.75 * (x < 0))),
}


@pytest.mark.parametrize("name", WITHOUT_COMPLEX)
def test_a_forward_pass_that_takes_no_complex_numbers(name, rng):
    f, f_backward = WITHOUT_COMPLEX[name]
    x = rng.standard_normal((3, 4))
    report = gradcheck((f, f_backward), x)
    assert report.ok, str(report)
    assert report.rows[0].method == "central difference"
    assert any("does not take complex numbers for x" in text for text in report.notes)
    report = gradcheck((f, lambda dy, cache: 2 * f_backward(dy, cache)), x)
    assert "2 times the correct one" in report.worst.diagnosis


def test_a_kink(rng):
    """At 0, each number between the one-sided derivatives is a gradient of the ReLU, and others are not."""
    x = np.array([[0.0, 1.0, -1.0, 0.0]])
    for at_zero, ok in ((0.0, True), (0.5, True), (1.0, True), (1.5, False), (-0.5, False)):

        def slope(x, at_zero=at_zero):
            return np.where(x > 0, 1.0, np.where(x == 0, at_zero, 0.0))

        pair = (lambda x: (np.maximum(x, 0), x), lambda dy, x, slope=slope: dy * slope(x))
        assert gradcheck(pair, x).ok == ok, at_zero


def test_several_outputs(rng):
    def forward(x):
        return ({"sin": np.sin(x), "parts": (x * x, x.sum(-1))}, x)

    def wrong(dy, x):
        return dy["sin"] * np.cos(x) + 2 * dy["parts"][0] * x

    def right(dy, x):
        return wrong(dy, x) + dy["parts"][1][..., None]

    assert gradcheck((forward, right), rng.standard_normal((2, 3))).ok
    assert not gradcheck((forward, wrong), rng.standard_normal((2, 3))).ok


class Cube:
    def forward(self, x):
        return x**3, x

    def backward(self, dy, x):
        return 3 * x**2 * dy


MESSAGES = {
    "Cube is a class: give a layer, as Cube\\(\\) makes one": Cube,
    "Cube.forward is a method": Cube().forward,
    "return the pair \\(y, cache\\)": (lambda x: x, lambda dy, cache: dy),
    "return the array for one input": (identity, lambda dy, cache: (dy,)),
}


@pytest.mark.parametrize(("words", "thing"), MESSAGES.items())
def test_a_message_for_what_is_no_layer(words, thing, rng):
    with refused(words):
        gradcheck(thing, rng.standard_normal((3, 4)))


GRADIENTS = {
    "the gradient is a list: return an array": lambda dy, x: dy.tolist(),
    "(4, 3) and the tensor (3, 4): it is transposed": lambda dy, x: dy.T,
    "must an axis be summed?": lambda dy, x: np.ones((2, 2)),
    "has dtype float32": lambda dy, x: dy.astype(np.float32),
    "contains NaN or infinity": lambda dy, x: dy * np.log(-np.abs(x)),
}


@pytest.mark.parametrize(("words", "backward"), GRADIENTS.items())
def test_a_gradient_that_is_no_array_of_numbers(words, backward, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = gradcheck((identity, backward), rng.standard_normal((3, 4)))
    assert words in report.worst.diagnosis, str(report)


class Buffered:
    """A layer whose backward pass keeps its last result from the second call on."""

    def __init__(self):
        self.last = 0.0

    def forward(self, x):
        return x**2, x

    def backward(self, dy, x):
        g = 2 * x * dy
        kept, self.last = self.last, 0.1 * g
        return g + kept


def test_a_buffer_that_is_not_cleared_does_not_count_as_a_changed_cache(rng):
    report = gradcheck(Buffered(), rng.standard_normal((3, 5)))
    assert not report.ok
    assert "modifies the cache" not in str(report)
