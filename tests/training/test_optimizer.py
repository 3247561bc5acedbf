"""Adam, schedules and clipping. Adam's parity with PyTorch is in test_torch_parity.py."""

import itertools
import math

import numpy as np
import pytest

from npformer import Module, Parameter, UserError
from npformer.functional import orthogonalize
from npformer.training.optimizer import (
    Adam,
    AdamW,
    Muon,
    clip_global_norm,
    constant,
    cosine,
    decayed,
    global_norm,
    warmup,
)


class Point(Module):
    """A model of parameters only."""

    def __init__(self, *values, dtype=np.float64):
        self.x = Parameter(np.array(values, dtype))


def test_adam_computed_by_hand():
    """Two steps with the gradients 2 and -1, β .5 and .75, eps 1, lr 1. Every number below is exact.

    m: 1, 0; v: 1, 1. Corrected: 1/.5 = 2 and 1/.25 = 4; 0 and 1/.4375.
    """
    point = Point(5.0)
    adam = Adam(point, betas=(0.5, 0.75), eps=1.0)
    point.grads[:] = 2
    adam.step(1.0)
    assert (adam.m[0], adam.v[0], adam.t) == (1, 1, 1)
    assert point.x.value[0] == pytest.approx(5 - 2 / (math.sqrt(4) + 1), rel=1e-15)
    point.grads[:] = -1
    adam.step(1.0)
    assert (adam.m[0], adam.v[0], adam.t) == (0, 1, 2)
    assert point.x.value[0] == pytest.approx(5 - 2 / 3, rel=1e-15)


def test_adam_changes_neither_the_gradients_nor_entries_without_gradient_nor_the_dtype():
    point = Point(3.0, 5.0, dtype=np.float32)
    adam = Adam(point)
    point.grads[:] = [0, 4]
    adam.step(0.5)
    assert point.x.value[0] == 3
    assert point.x.value[1] < 5
    assert point.x.grad.tolist() == [0, 4]
    assert {adam.m.dtype, adam.v.dtype, point.values.dtype, point.x.value.dtype} == {np.dtype(np.float32)}


class Layer(Module):
    """A bias between two neighbouring matrices and a third one, and a table that is tied."""

    def __init__(self):
        self.first, self.second = (Parameter(np.full(shape, 2.0)) for shape in ((3, 2), (2, 2)))
        self.bias, self.last = Parameter(np.full(5, 2.0)), Parameter(np.full((1, 3), 2.0))
        self.tied = self.first


def test_the_decay_is_decoupled_from_the_gradient():
    """The update is that of Adam, and the gradients and moments do not contain the decay."""
    one, other = Layer(), Layer()
    adam, adamw = Adam(one), AdamW(other, weight_decay=0.1)
    for seed in range(3):
        before = other.values.copy()
        one.values[:] = before
        grads = np.random.default_rng(seed).standard_normal(18)
        one.grads[:] = other.grads[:] = grads
        adam.step(0.2)
        adamw.step(0.2)
        decay = np.where(np.arange(18) // 5 == 2, 0.0, 0.2 * 0.1 * before)  # no decay at 10 to 14
        np.testing.assert_allclose(other.values, one.values - decay, rtol=1e-14)
        np.testing.assert_array_equal(other.grads, grads)
        np.testing.assert_array_equal(adamw.v, adam.v)


def test_the_group_that_decays_can_be_chosen():
    layer = Layer()
    AdamW(layer, weight_decay=0.5, decays=lambda name, parameter: name == "bias").step(1.0)
    assert (set(layer.bias.value), set(layer.first.value.flat)) == ({1.0}, {2.0})


@pytest.mark.parametrize("shape", [(6, 4), (4, 9), (5, 5)])
def test_newton_schulz_iterations_make_singular_values_equal(shape):
    """Those from .01 to 1 come near 1, and the singular vectors stay."""
    rng = np.random.default_rng(3)
    u, _, vt = np.linalg.svd(rng.standard_normal(shape), full_matrices=False)
    values = np.geomspace(1, 0.01, min(shape))
    found = u.T @ orthogonalize(7 * (u * values) @ vt) @ vt.T
    np.testing.assert_allclose(found, np.diag(np.diag(found)), atol=1e-12)
    assert 0.67 < np.diag(found).min() < np.diag(found).max() < 1.21
    # one iteration is the polynomial, with the largest value near 1
    x = values / np.linalg.norm(values)
    once = u.T @ orthogonalize((u * values) @ vt, steps=1) @ vt.T
    np.testing.assert_allclose(np.diag(once), 3.4445 * x - 4.775 * x**3 + 2.0315 * x**5, rtol=1e-5)
    assert not orthogonalize(np.zeros(shape)).any()
    assert (orthogonalize(np.full(shape, 1e-9)) > 0).all()  # no division by a small negative number


class Stack(Module):
    """A table, and layers that have a matrix and a bias each."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.table = Parameter(rng.standard_normal((2, 3)))
        self.layers = [Layer() for _ in range(2)]
        for layer in self.layers:
            layer.bias.value[:] = rng.standard_normal(5)
            layer.second.widths = (1, 1)


def test_two_steps_of_muon():
    """The matrices of layers get orthogonalized updates, and the others those of AdamW."""
    stack, other = Stack(), Stack()
    muon, adamw = Muon(stack, weight_decay=0.25), AdamW(other, weight_decay=0.25)
    expected, m = [layer.first.value.copy() for layer in stack.layers], [0, 0]
    columns = stack.layers[0].second.value.copy()
    for seed in range(2):
        stack.grads[:] = other.grads[:] = np.random.default_rng(seed).standard_normal(42)
        for i, layer in enumerate(stack.layers):
            g = layer.first.grad
            m[i] = 0.95 * m[i] + 0.05 * g
            update = 0.2 * math.sqrt(3) * orthogonalize(0.95 * m[i] + 0.05 * g)
            expected[i] = (1 - 0.1 * 0.25) * expected[i] - 0.1 * update
        if seed == 0:  # the orthogonalized matrix of one column is the column with a length near 1
            g = stack.layers[0].second.grad
            lengths = np.array([[np.linalg.norm(orthogonalize(column[:, None]))] for column in g.T]).T
            columns = 0.975 * columns - 0.1 * 0.2 * math.sqrt(2) * lengths * g / np.linalg.norm(g, axis=0)
        muon.step(0.1)
        adamw.step(0.1)
        if seed == 0:
            np.testing.assert_allclose(stack.layers[0].second.value, columns, rtol=1e-6)
    for matrix, layer, theirs in zip(expected, stack.layers, other.layers, strict=True):
        np.testing.assert_allclose(layer.first.value, matrix, rtol=1e-13)
        np.testing.assert_array_equal(layer.bias.value, theirs.bias.value)
    np.testing.assert_array_equal(stack.table.value, other.table.value)
    with pytest.raises(UserError, match="Muon needs a model with matrices inside layers"):
        Muon(Layer())


@pytest.mark.parametrize(
    ("model", "optimizer", "ends"), [(Layer, AdamW, (0, 4, 11, 16, 18)), (Stack, Muon, (0, 1, 8, 30, 42))]
)
def test_slices_of_the_buffer_give_the_same_bits(model, optimizer, ends):
    outcomes = []
    for cuts in ([0, ends[-1]], ends):
        layer = model()
        optimizer_of_layer = optimizer(layer, weight_decay=0.3)
        layer.grads[:] = np.linspace(-1, 1, ends[-1])

        def over(update, size, cuts=cuts):
            for start, end in itertools.pairwise(cuts):
                update(slice(size * start // cuts[-1], size * end // cuts[-1]))

        optimizer_of_layer.step(0.1, over)
        optimizer_of_layer.step(0.1, over)
        outcomes.append(layer.values)
    np.testing.assert_array_equal(*outcomes)


# --- schedules ---


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (warmup(64, 100), {1: 1 / 8000, 50: 50 / 8000, 100: 100 / 8000, 400: 50 / 8000}),  # 64^-.5 100^-1.5
        (warmup(64, 100, factor=2.5), {50: 2.5 * 50 / 8000}),
        (constant(1e-4), {1: 1e-4, 10: 1e-4, 10**6: 1e-4}),
        (
            cosine(0.8, total_steps=110, warmup_steps=10),
            {1: 0.08, 5: 0.4, 10: 0.8, 35: 0.4 + 0.4 * 0.5**0.5, 60: 0.4, 110: 0, 500: 0},
        ),
        # without a decay to 0, the middle is the mean of the peak and the floor
        (
            cosine(0.8, total_steps=110, warmup_steps=10, floor=0.2),
            {1: 0.08, 10: 0.8, 60: 0.5, 110: 0.2, 500: 0.2},
        ),
        (cosine(0.8, 100), {0: 0.8}),
        (decayed(constant(0.8), 10, 0.2), {8: 0.8, 9: 0.4, 10: 0, 11: 0}),
        (decayed(constant(0.8), 10, 0.01), {9: 0.8, 10: 0.8, 11: 0.8}),
    ],
    ids=[
        "warmup",
        "factor",
        "constant",
        "cosine",
        "cosine with a floor",
        "cosine without warmup",
        "decay",
        "no decay",
    ],
)
def test_the_rates_of_a_schedule(schedule, rates):
    assert {step: schedule(step) for step in rates} == pytest.approx(rates)


@pytest.mark.parametrize("steps", [0, -5, 2.5])
def test_schedules_refuse_steps_that_are_no_count(steps):
    with pytest.raises(UserError, match=f"warmup_steps is {steps}: it must be a whole number, 1 or more"):
        warmup(512, steps)
    with pytest.raises(UserError, match=f"total_steps is {steps}: it must be a whole number, 1 or more"):
        cosine(0.1, steps)


# --- clipping ---


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_gradient_is_scaled_down_in_place(dtype):
    grads = np.array([3.0, 4.0], dtype)
    assert clip_global_norm(grads, 1.0) == 5
    assert grads.dtype == dtype
    np.testing.assert_allclose(grads, [0.6, 0.8], rtol=1e-15 if dtype == np.float64 else 1e-6)


@pytest.mark.parametrize(
    ("values", "max_norm"),
    [([3.0, 4.0], 5.0), ([3.0, 4.0], 7.0), ([0.0, 0.0, 0.0], 1.0), ([np.inf, 2.0], 1.0)],
)
def test_a_small_gradient_is_not_changed(values, max_norm):
    """Neither is one that holds infinity, so that the error which follows can name it."""
    grads = np.array(values)
    assert clip_global_norm(grads, max_norm) == global_norm(grads) == np.linalg.norm(values)
    assert grads.tolist() == values
