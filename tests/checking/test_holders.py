"""A gradient check finds parameters in every kind of holder, also where a Module does not look."""

from collections import deque
from fractions import Fraction
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import npformer
from npformer.checking.holders import held_objects, holds_others, named_parameters
from npformer.nn import Linear, Module, Parameter


class Pair(NamedTuple):
    up: Parameter
    down: Parameter


class Slotted:
    __slots__ = ("empty", "scale")

    def __init__(self):
        self.scale = one()


class Store:
    shared = Parameter(np.ones(1))

    def __init__(self):
        self.table = {("row", 0): one()}


class Anything(Module):
    def __init__(self, held):
        self.held = held


def one():
    return Parameter(np.ones(1))


HOLDERS = {
    "list": (lambda: [one(), one()], ["held.0", "held.1"]),
    "tuple": (lambda: (one(), (one(),)), ["held.0", "held.1.0"]),
    "named tuple": (lambda: Pair(one(), one()), ["held.up", "held.down"]),
    "dict": (lambda: {"w": one(), "deep": [{"b": one()}]}, ["held.w", "held.deep.0.b"]),
    "modules in a dict": (lambda: {"a": [Linear(1, 1)]}, ["held.a.0.weight", "held.a.0.bias"]),
    "deque": (lambda: deque([one()]), ["held.0"]),
    "namespace": (lambda: SimpleNamespace(q=one()), ["held.q"]),
    "slots": (Slotted, ["held.scale"]),
    "another object": (Store, ["held.table.row.0", "held.shared"]),
}
OF_A_MODULE = ("list", "tuple", "named tuple", "dict", "modules in a dict")


@pytest.mark.parametrize("kind", HOLDERS)
def test_the_parameters_of_a_holder(kind):
    make, names = HOLDERS[kind]
    model = Anything(make())
    assert [name for name, _ in named_parameters(model)] == names
    assert [name for name, _ in named_parameters(SimpleNamespace(held=model.held))] == names
    assert list(model.state_dict()) == (names if kind in OF_A_MODULE else [])


class Scaled(Module):
    """y = scale x, with the scale in an object in which a Module does not look for it."""

    def __init__(self):
        self.held = SimpleNamespace(scale=Parameter(np.full(3, 2.0)))

    def forward(self, x):
        return self.held.scale.value * x, x

    def backward(self, dy, cache):
        self.held.scale.accumulate((dy * cache).sum(0))
        return self.held.scale.value * dy


def test_a_gradient_check_names_the_parameters_that_training_does_not_find():
    report = npformer.gradcheck(Scaled(), np.random.default_rng(0).standard_normal((4, 3)))
    assert {row.tensor for row in report.rows} >= {"x", "held.scale"}
    assert report.ok
    hidden = [note for note in report.notes if note.startswith("training does not find")]
    assert hidden == [
        "training does not find held.scale: hold each parameter in an attribute of a Module, or in a list, "
        "a tuple or a dict there"
    ]
    found = npformer.gradcheck(Linear(3, 2, dtype=np.float64), np.ones((4, 3)))
    assert not any(note.startswith("training does not find") for note in found.notes)


def test_an_object_with_value_and_grad_is_a_parameter():
    own = SimpleNamespace(value=np.ones(2), grad=np.zeros(2))
    assert list(named_parameters(Anything({"own": own, "no gradient": SimpleNamespace(value=1)}))) == [
        ("held.own", own)
    ]


@pytest.mark.parametrize("item", [Path("a"), Fraction(1, 2), Lock(), np.random.default_rng(0), np.ones(1)])
def test_objects_of_python_and_numpy_hold_nothing(item):
    """The search for parameters would run through their attributes in each training step."""
    assert not holds_others.__wrapped__(type(item))  # computed anew, and not taken from its cache


def test_a_list_that_is_held_twice_is_searched_twice():
    shared = [one()]
    found = held_objects(SimpleNamespace(a=shared, b=shared), lambda item: isinstance(item, Parameter))
    assert [name for name, _ in found] == ["a.0", "b.0"]
