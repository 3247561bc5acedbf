"""Parameters are found in every kind of holder, and everything that uses parameters sees the same ones."""

from collections import deque
from fractions import Fraction
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from npformer.nn import Linear, Module, Parameter
from npformer.nn.holders import held_objects, holds_others
from npformer.nn.module import named_parameters
from npformer.training.optimizer import Adam


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
    "deque": (lambda: deque([one()]), ["held.0"]),
    "namespace": (lambda: SimpleNamespace(q=one()), ["held.q"]),
    "slots": (Slotted, ["held.scale"]),
    "another object": (Store, ["held.table.row.0", "held.shared"]),
    "modules in a dict": (lambda: {"a": [Linear(1, 1)]}, ["held.a.0.weight", "held.a.0.bias"]),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_the_parameters_of_a_holder(kind):
    make, names = HOLDERS[kind]
    model = Anything(make())
    assert [name for name, _ in model.named_parameters()] == names
    assert [name for name, _ in named_parameters(SimpleNamespace(held=model.held))] == names
    assert list(model.state_dict()) == names
    count = model.count_parameters()
    Adam(model)
    assert count == len(names) == model.values.size
    model.values[...] = 7
    assert all((p.value == 7).all() for p in model.parameters())


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


def test_a_part_that_points_to_its_model():
    model = Anything([Linear(1, 1)])
    model.held[0].model = model
    assert len(model.modules()) == 2
    assert [name for name, _ in model.named_parameters()] == ["held.0.weight", "held.0.bias"]


def test_a_parameter_that_is_added_or_replaced_later():
    model = Anything([Linear(1, 1)])
    model.zero_grad()
    model.held.append(Linear(1, 1))
    model.held[0].weight, model.scale = Parameter(np.ones((1, 1))), one()
    late = [model.held[1].weight, model.held[0].weight, model.scale]
    for parameter in late:
        parameter.grad[...] = 1
    model.zero_grad()
    assert not any(parameter.grad.any() for parameter in late)
