"""Trials: gradient checks, comparisons and searches for leaks, of what a file defines."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import is_array
from npformer.exercises.compare import compare
from npformer.exercises.fault import Fault
from npformer.gradcheck import gradcheck
from npformer.leaks import assert_no_leak
from npformer.zoo.specimen import Names, Trial

Make = Callable[[Names], Any]


def gradients(label: str, make: Make, **settings) -> Trial:
    """The gradient check of make(own) = (what to check, *inputs); settings go to gradcheck."""

    def run(own):
        thing, *inputs = make(own)
        report = gradcheck(thing, *inputs, **settings)
        if not report.ok:
            row = report.worst
            raise Fault(f"the gradient check fails at {row.tensor}", (row.diagnosis,))

    return Trial(label, run)


def equal(label: str, make: Make) -> Trial:
    """make(own) is a dict from name to (found, right): each pair must be the same, also in its dtype."""

    def run(own):
        for name, (found, right) in make(own).items():
            compare(name, right, found, who="the code")

    return Trial(label, run)


def no_leak(label: str, make: Make) -> Trial:
    """make(own) = (forward, x, mask): what the mask forbids must not move an output; see npformer.leaks."""

    def run(own):
        try:
            assert_no_leak(*make(own))
        except AssertionError as error:
            raise Fault(str(error)) from None

    return Trial(label, run)


def float32_stays(label: str, make: Make) -> Trial:
    """make(own) = arrays by name, all made from float32: none may have become float64."""

    def run(own):
        for name, array in make(own).items():
            if not is_array(array):
                raise Fault(f"{name} is of type {type(array).__name__} and must be an array")
            if array.dtype != np.float32:
                raise Fault(f"{name} is {array.dtype} where everything that was given is float32")

    return Trial(label, run)


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    """Normal numbers, float64, the same every time."""
    return np.random.default_rng(seed).standard_normal(shape)


def random_parameters(layer, seed: int = 2):
    """The same layer with every parameter at normal values: gains and biases are not 1 and 0."""
    rng = np.random.default_rng(seed)
    for _, parameter in layer.named_parameters():
        parameter.value = parameter.value + rng.standard_normal(parameter.shape)
    return layer
