"""Functions that make trials: gradient checks, comparisons, searches for leaks, and checks of the dtype."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking import gradcheck
from npformer.checking.leaks import assert_no_leak
from npformer.learn.bugs.specimen import Names, Trial
from npformer.learn.tasks.compare import compare
from npformer.learn.tasks.verdict import Fault

Make = Callable[[Names], Any]


def gradients(label: str, make: Make, **settings: Any) -> Trial:
    """Return a trial that checks the gradients of a layer or of a pair (forward, backward).

    Args:
        label: A description of the trial.
        make: make(own) returns (layer or pair, *inputs).
        settings: Arguments of gradcheck.
    """

    def run(own: Names) -> None:
        thing, *inputs = make(own)
        report = gradcheck(thing, *inputs, **settings)
        if not report.ok:
            row = report.worst
            raise Fault(f"the gradient check fails at {row.tensor}", (row.diagnosis,))

    return Trial(label, run)


def equal(label: str, make: Make) -> Trial:
    """Return a trial that compares results. make(own) returns a dict from name to (found, right)."""

    def run(own: Names) -> None:
        for name, (found, right) in make(own).items():
            compare(name, right, found, who="the code")

    return Trial(label, run)


def no_leak(label: str, make: Make) -> Trial:
    """Return a trial that searches for leaks. make(own) returns the arguments of `assert_no_leak`."""

    def run(own: Names) -> None:
        try:
            assert_no_leak(*make(own))
        except AssertionError as error:
            raise Fault(str(error)) from None

    return Trial(label, run)


def float32_stays(label: str, make: Make) -> Trial:
    """Return a trial of the dtype. make(own) returns arrays by name, computed from float32 arrays only."""

    def run(own: Names) -> None:
        for name, array in make(own).items():
            if not is_array(array):
                raise Fault(f"{name} is of type {type(array).__name__} and must be an array")
            if array.dtype != np.float32:
                raise Fault(f"{name} is {array.dtype}, although all inputs are float32")

    return Trial(label, run)


def normal(*shape: int, seed: int = 1) -> Array:
    """Return standard normal random numbers in float64, the same ones each time."""
    return np.random.default_rng(seed).standard_normal(shape)


def random_parameters(layer: Any, seed: int = 2) -> Any:
    """Add normal random numbers to every parameter, so that no gain is 1 and no bias 0. Return the layer."""
    rng = np.random.default_rng(seed)
    for _, parameter in layer.named_parameters():
        parameter.value = parameter.value + rng.standard_normal(parameter.shape)
    return layer
