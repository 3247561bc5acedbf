"""The gradient checker: correct gradients pass, and wrong ones are found, located and named."""

import json
import os
import sys

import numpy as np
import pytest
from refused import refused

from npformer import Parameter
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.checking.cases import component_cases
from npformer.nn import LayerNorm, Linear

CASES = component_cases()
SOME = 6 if os.environ.get("NPFORMER_NIGHTLY") else 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_component_and_option(case):
    """Components agree within 1e-12 and whole models within 1e-11, including second derivatives."""
    report = case.check()
    assert report.ok, str(report)
    whole = case.name.startswith(
        ("Transformer", "UniversalTransformer", "RecurrentTranslator", "Bart,", "T5,", "ViT,")
    )
    assert case.tolerance == (1e-11 if whole else 1e-12)
    assert any(row.tensor == "hessian symmetry" for row in report.rows)


@pytest.mark.parametrize("case", CASES[::SOME], ids=lambda case: case.name)
def test_central_differences_agree(case):
    report = case.check("difference")
    assert report.ok, str(report)
    assert {row.method for row in report.rows} >= {"central difference"}


def test_a_report_as_a_table_and_as_json(rng):
    report = gradcheck(LayerNorm(4), rng.standard_normal((2, 4)))
    assert "all gradients correct" in str(report)
    rows = json.loads(json.dumps(report.as_json()))
    assert {"name", "tensor", "error", "method", "ok"} <= set(rows[0])
    assert [row["tensor"] for row in rows][:3] == ["x", "gain", "bias"]


def test_the_parameters_are_restored(rng):
    layer = Linear(4, 3)
    weight, grad = layer.weight.value, layer.weight.grad
    gradcheck(layer, rng.standard_normal((2, 4)))
    assert layer.weight.value is weight
    assert layer.weight.grad is grad
    assert not grad.any()


class OwnLayer:
    """A layer y = x scale with a given backward pass, as a learner would write it."""

    def __init__(self, backward):
        self.scale = Parameter(np.array([1.0, 2.0, 3.0]))
        self._backward = backward

    def forward(self, x):
        return x * self.scale.value, x

    def backward(self, dy, cache):
        return self._backward(self, dy, cache)


def overwriting(layer, dy, x):
    layer.scale.grad = (dy * x).sum((0, 1))
    return dy * layer.scale.value


def not_summed(layer, dy, x):
    layer.scale.grad = layer.scale.grad + (dy * x).sum(0)
    return dy * layer.scale.value


def forgetting(layer, dy, x):
    return dy * layer.scale.value


def averaging(layer, dy, x):
    layer.scale.grad += (dy * x).mean((0, 1))
    return dy * layer.scale.value


def writing_into_dy(layer, dy, x):
    layer.scale.grad += (dy * x).sum((0, 1))
    dy *= layer.scale.value
    return dy


def writing_into_cache(layer, dy, x):
    layer.scale.grad += (dy * x).sum((0, 1))
    x *= 0
    return dy * layer.scale.value


MISTAKES = {
    overwriting: ("gradients accumulate", "must add to it"),
    not_summed: ("scale", "so an axis must still be summed"),
    forgetting: ("scale", "no gradient reached this tensor"),
    averaging: ("scale", "1/10 (all positions)"),
    writing_into_dy: ("inputs not modified", "writes into dy"),
    writing_into_cache: ("inputs not modified", "writes into the cache"),
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_mistakes_of_a_layer(mistake, rng):
    tensor, words = MISTAKES[mistake]
    report = gradcheck(OwnLayer(mistake), rng.standard_normal((2, 5, 3)))
    found = {row.tensor: row.diagnosis for row in report.failures}
    assert tensor in found, str(report)
    assert words in found[tensor], str(report)


class Forgetful:
    """A layer y = x² that stores its activation on itself instead of in the cache."""

    def forward(self, x):
        self.x = x
        return x * x, None

    def backward(self, dy, cache):
        return 2 * self.x * dy


def test_activations_on_the_layer_are_found(rng):
    report = gradcheck(Forgetful(), rng.standard_normal((2, 3)))
    assert "stores activations in attributes" in report.worst.diagnosis


def identity(x):
    return 1.0 * x, x.shape


def centred(x):
    return x - x.mean(-1, keepdims=True), None


def plus_one(dy, cache):
    dx = dy.copy()
    dx[1, 2] += 1
    return dx


W = np.random.default_rng(1).standard_normal((3, 3))


def residual(x):
    return x + x @ W, None


def with_a_small_term(x):
    return x**2 + 1e-8 * np.sin(3 * x), x


PAIRS = {
    "sign": ((F.softmax, lambda dy, y: -F.softmax_backward(dy, y)), "sign"),
    "factor": ((F.softmax, lambda dy, y: 3 * F.softmax_backward(dy, y)), "3 times"),
    "one over an axis": ((F.softmax, lambda dy, y: F.softmax_backward(dy, y) / 5), "1/5 (axis 0 of x)"),
    "root of an axis": ((F.softmax, lambda dy, y: F.softmax_backward(dy, y) / 5**0.5), "1/√5"),
    "zero": ((F.softmax, lambda dy, y: 0 * dy), "no gradient reached"),
    "not a number": ((F.softmax, lambda dy, y: np.nan * dy), "NaN"),
    "float32": ((F.softmax, lambda dy, y: F.softmax_backward(*np.float32((dy, y)))), "computed in float32"),
    "mean term": ((centred, lambda dy, cache: dy), "along axis 1 it differs"),
    "residual": ((lambda x: (x + 2 * x, None), lambda dy, cache: 2 * dy), "times the correct one"),
    "residual left out": ((residual, lambda dy, cache: dy @ W.T), "left out"),
    "residual twice": ((residual, lambda dy, cache: 2 * dy + dy @ W.T), "added twice"),
    "small term": ((with_a_small_term, lambda dy, x: 2 * x * dy), "a small term is missing"),
    "one entry": ((identity, plus_one), "1 of 15 entries are wrong"),
    "mask": ((lambda x: (x * (np.arange(3) < 2), None), lambda dy, cache: dy), "should be 0"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_mistakes_of_a_pair(name, rng):
    pair, words = PAIRS[name]
    report = gradcheck(pair, rng.standard_normal((5, 3)))
    assert not report.ok
    assert words in report.worst.diagnosis, str(report)


def test_the_first_wrong_entry_is_named(rng):
    report = gradcheck((identity, plus_one), rng.standard_normal((4, 3)))
    assert report.rows[0].entry == (1, 2)


def test_the_first_wrong_entry_of_many(rng):
    """Equal errors do not cancel."""
    pair = (centred, lambda dy, cache: dy)
    for seed in range(3):
        assert gradcheck(pair, rng.standard_normal((2, 5)), seed=seed).rows[0].entry in (None, (0, 0))


def test_a_backward_that_is_not_linear(rng):
    pair = (lambda x: (1.0 * x, None), lambda dy, cache: dy * np.abs(dy))
    rows = {row.tensor: row.ok for row in gradcheck(pair, rng.standard_normal((4, 3))).rows}
    assert not rows["backward is linear"]


def test_second_derivatives_that_disagree(rng):
    """The field (-x1, x0) is not the gradient of a function: it rotates."""
    pair = (lambda x: ((x * x).sum() / 2, x), lambda dy, x: dy * np.stack([x[1], -x[0]]))
    rows = {row.tensor: row.ok for row in gradcheck(pair, rng.standard_normal(2), hessian=True).rows}
    assert not rows["hessian symmetry"]


REFUSED = {
    "object has no forward": (object(), np.ones(2)),
    "nothing to check": ((F.softmax, F.softmax_backward), np.ones(2, int)),
    "has no entries: give inputs without": ((lambda x: (x[:0], x), lambda dy, x: x), np.ones(2)),
    "softmax is one function: give the pair": (F.softmax, np.ones(2)),
    r"took 1 real array \(w; integers: ids\)": (
        (lambda w, ids: (w[ids], ids), lambda dy, ids: (dy, dy)),
        np.ones(2),
        np.arange(2),
    ),
    "returned 2 gradients": ((lambda x: (x, None), lambda dy, c: (dy, dy)), np.ones(2)),
    "returned 0 gradients": ((lambda x: (x, None), lambda dy, c: None), np.ones(2)),
    r"needs 2 arguments \(x, w\), and 1 was given: give one for each .*, one --shape for each": (
        (lambda x, w: (x @ w, None), lambda dy, c: (dy, dy)),
        np.ones((2, 2)),
    ),
    "x holds complex numbers: give real ones": (
        (lambda x: (2 * x, None), lambda dy, c: 2 * dy),
        np.ones(2) + 1j,
    ),
    "z holds complex numbers: give real ones": (
        (lambda x, z: (x * z, z), lambda dy, z: dy * z),
        np.ones(2),
        np.ones(2) + 1j,
    ),
    "takes 1 array ": ((lambda x: (x, None), lambda dy, c: dy), np.ones(2), np.ones(2)),
}


@pytest.mark.parametrize(("words", "arguments"), REFUSED.items())
def test_objects_that_do_not_follow_the_protocol(words, arguments):
    with refused(words):
        gradcheck(*arguments)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "magic"}, "method is 'magic': choose one of complex, difference"),
        ({"method": ["complex"]}, r"method is \['complex'\]: choose one of"),
        ({"tolerance": "x"}, "tolerance is 'x': it must be a number above 0"),
        ({"tolerance": -1.0}, "tolerance is -1.0: it must be a number above 0"),
        ({"seed": "a"}, "seed is 'a': it must be a whole number, 0 or more"),
        ({"seed": -1}, "seed is -1: it must be a whole number, 0 or more"),
        ({"library": "tf"}, "library is 'tf': choose one of torch, jax"),
        ({"library": "jax"}, "library='jax' needs jax, which is not installed: pip install jax"),
    ],
)
def test_settings_that_are_refused(settings, words, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "npformer.checking.foreign.jax_layer", raising=False)
    with refused(words):
        gradcheck((F.softmax, F.softmax_backward), np.ones(2), **settings)
