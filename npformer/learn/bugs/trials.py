"""Functions that make trials: gradient checks, comparisons, searches for leaks, and checks of the dtype."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking import gradcheck
from npformer.checking.check_target import TOLERANCE
from npformer.checking.leaks import assert_no_movement, movement
from npformer.learn.bugs.specimen import Names, Trial
from npformer.learn.tasks.answer import DamagedAnswer
from npformer.learn.tasks.compare import compare
from npformer.learn.tasks.reports import plain_rows, report_from
from npformer.learn.tasks.verdict import Fault

Make = Callable[[Names], Any]

PROPERTIES = {"adjoint", "backward is linear", "gradients accumulate", "inputs not modified"}


def gradients(label: str, make: Make, **settings: Any) -> Trial:
    """Return a trial that checks the gradients of a layer or of a pair (forward, backward).

    The child process measures the errors of the gradients, because the forward pass is the learner's as well.

    Args:
        label: A description of the trial.
        make: make(own) returns (layer or pair, *inputs).
        settings: Arguments of gradcheck.
    """

    def observe(own: Names) -> list[Any]:
        thing, *inputs = make(own)
        return plain_rows(gradcheck(thing, *inputs, **settings))

    def judge(observed: Any, repaired: Names) -> None:
        report = report_from(label, observed)
        if not report.ok:
            row = report.worst
            raise Fault(f"the gradient check fails at {row.tensor}", (row.diagnosis,))
        if not {row.tensor for row in report.rows} > PROPERTIES or report.worst.error > TOLERANCE["complex"]:
            raise DamagedAnswer("other rows")

    return Trial(label, observe, judge)


def equal(label: str, make: Make) -> Trial:
    """Return a trial that compares results with the right ones.

    Args:
        label: A description of the trial.
        make: make(own) returns a dict from name to (found, right). The right results are those with the
            repaired code in place of the learner's.
    """

    def observe(own: Names) -> dict[str, Any]:
        return {name: found for name, (found, _) in make(own).items()}

    def judge(observed: Any, repaired: Names) -> None:
        for name, (_, right) in make(repaired).items():
            compare(name, right, _item(observed, name), who="the code")

    return Trial(label, observe, judge)


def alike(label: str, make: Make) -> Trial:
    """Return a trial that compares two results of the learner's code with each other.

    It serves where two correct codes may differ, because they draw other random numbers.

    Args:
        label: A description of the trial.
        make: make(own) returns a dict from name to the two results.
    """

    def observe(own: Names) -> Any:
        return make(own)

    def judge(observed: Any, repaired: Names) -> None:
        for name in make(repaired):
            match _item(observed, name):
                case (found, right):
                    compare(name, right, found, who="the code")
                case _:
                    raise DamagedAnswer("not two results")

    return Trial(label, observe, judge)


def _item(observed: Any, name: str) -> Any:
    """Return the result with this name."""
    if not isinstance(observed, dict):
        raise DamagedAnswer("no results")
    if name not in observed:
        raise Fault(f"there is no {name}: keep the names in the code as they were")
    return observed[name]


def no_leak(label: str, make: Make) -> Trial:
    """Return a trial that searches for leaks. make(own) returns (forward, x) or (forward, x, mask)."""

    def observe(own: Names) -> Array:
        forward, x, *_ = make(own)
        return movement(forward, x)

    def judge(observed: Any, repaired: Names) -> None:
        forward, x, *mask = make(repaired)
        right = movement(forward, x)
        if not is_array(observed) or (observed.dtype, observed.shape) != (right.dtype, right.shape):
            raise DamagedAnswer("no movement")
        try:
            assert_no_movement(observed, *mask)
        except AssertionError as error:
            raise Fault(str(error)) from None

    return Trial(label, observe, judge)


def float32_stays(label: str, make: Make) -> Trial:
    """Return a trial of the dtype. make(own) returns arrays by name, computed from float32 arrays only."""

    def judge(observed: Any, repaired: Names) -> None:
        if not isinstance(observed, dict) or not observed:
            raise DamagedAnswer("no arrays")
        for name, array in observed.items():
            if not is_array(array):
                raise Fault(f"{name} is of type {type(array).__name__} and must be an array")
            if array.dtype != np.float32:
                raise Fault(f"{name} is {array.dtype}, although all inputs are float32")

    return Trial(label, make, judge)


def normal(*shape: int, seed: int = 1) -> Array:
    """Return standard normal random numbers in float64, the same ones each time."""
    return np.random.default_rng(seed).standard_normal(shape)


def random_parameters(layer: Any, seed: int = 2) -> Any:
    """Add normal random numbers to every parameter, so that no gain is 1 and no bias 0. Return the layer."""
    rng = np.random.default_rng(seed)
    for _, parameter in layer.named_parameters():
        parameter.value = parameter.value + rng.standard_normal(parameter.shape)
    return layer
