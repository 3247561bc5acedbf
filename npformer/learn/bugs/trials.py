"""Functions that make trials: gradient checks, comparisons, searches for leaks, and checks of the dtype."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking import gradcheck
from npformer.checking.check_target import TOLERANCE
from npformer.checking.leaks import assert_no_movement, movement
from npformer.language import say
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
            raise Fault(say("the gradient check fails at {name}", name=row.tensor), (row.diagnosis,))
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
            compare(name, right, _item(observed, name), who=say("the code"))

    return Trial(label, observe, judge)


def alike(label: str, make: Make) -> Trial:
    """Return a trial that compares two results of the learner's code with each other.

    It serves where two correct codes may differ, because they draw other random numbers.

    Args:
        label: A description of the trial.
        make: make(own) returns a dict from name to the two results.
    """

    def judge(observed: Any, repaired: Names) -> None:
        for name in make(repaired):
            match _item(observed, name):
                case (found, right):
                    compare(name, right, found, who=say("the code"))
                case _:
                    raise DamagedAnswer("not two results")

    return Trial(label, make, judge)


def as_right_layer(label: str, make: Make, *names: str, seed: int = 5, **settings: Any) -> Trial:
    """Return a trial that compares the output and the gradients with those of a correct layer.

    Args:
        label: A description of the trial.
        make: make(own) returns (the learner's layer or pair, the correct one, *inputs).
        names: The names of the results, as in `results_of`.
        seed: The seed of the gradient of the output.
        settings: Keyword arguments of forward.
    """

    def dy(y: Array) -> Array:
        return normal(*y.shape, seed=seed)

    def observe(own: Names) -> dict[str, Any]:
        mine, _, *inputs = make(own)
        return results_of(mine, inputs, names, dy, **settings)

    def judge(observed: Any, repaired: Names) -> None:
        mine, right, *inputs = make(repaired)
        for name, result in results_of(right, inputs, names, dy, named=mine, **settings).items():
            compare(name, result, _item(observed, name), who=say("the code"))

    return Trial(label, observe, judge)


def results_of(
    thing: Any,
    inputs: Any,
    names: Sequence[str],
    dy: Callable[[Array], Array],
    named: Any = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return the results of a forward and a backward pass by name.

    Args:
        thing: A layer, or a pair (forward, backward).
        inputs: The inputs.
        names: The names of the output, of the gradients of the inputs in order, and of the gradients of some
            parameters, as in "weight.grad". If there is one name, backward does not run.
        dy: dy(y) returns the gradient of the output y.
        named: A layer with the same parameters, from which they take their names. The default is `thing`.
        settings: Keyword arguments of forward. A number as rng is the seed of a generator.
    """
    forward, backward = thing if isinstance(thing, tuple) else (thing.forward, thing.backward)
    if "rng" in settings:
        settings = settings | {"rng": np.random.default_rng(settings["rng"])}
    y, cache = forward(*inputs, **settings)
    if len(names) == 1:
        return {names[0]: y}
    dinputs = backward(dy(y), cache)
    of_inputs = [name for name in names[1:] if not name.endswith(".grad")]
    given = dinputs if len(of_inputs) > 1 else [dinputs][: len(of_inputs)]
    found = dict(zip(of_inputs, given, strict=True))
    if len(of_inputs) + 1 < len(names):
        pairs = zip((named or thing).named_parameters(), thing.parameters(), strict=True)
        found |= {f"{name}.grad": parameter.grad for (name, _), parameter in pairs}
    return {names[0]: y, **{name: found[name] for name in names[1:]}}


def _item(observed: Any, name: str) -> Any:
    """Return the result with this name."""
    if not isinstance(observed, dict):
        raise DamagedAnswer("no results")
    if name not in observed:
        raise Fault(say("there is no {name}: keep the names in the code as they were", name=name))
    return observed[name]


def no_leak(label: str, make: Make) -> Trial:
    """Return a trial that searches for leaks. make(own) returns (forward, x) or (forward, x, mask).

    forward(x) returns (y, cache), as that of a layer.
    """

    def observe(own: Names) -> Array:
        forward, x, *_ = make(own)
        return movement(lambda x: forward(x)[0], x)

    def judge(observed: Any, repaired: Names) -> None:
        forward, x, *mask = make(repaired)
        right = movement(lambda x: forward(x)[0], x)
        if not is_array(observed) or (observed.dtype, observed.shape) != (right.dtype, right.shape):
            raise DamagedAnswer("no movement")
        try:
            assert_no_movement(observed, *mask)
        except AssertionError as error:
            raise Fault(str(error)) from None

    return Trial(label, observe, judge)


def float32_stays(make: Make, *names: str, **settings: Any) -> Trial:
    """Return a trial of the dtype of a layer's results.

    Args:
        make: make(own) returns (layer or pair, *inputs), whose parameters are float32.
        names: The names of the results, as in `results_of`.
        settings: Keyword arguments of forward.
    """

    def results(own: Names) -> dict[str, Any]:
        thing, *inputs = make(own)
        inputs = [x.astype(np.float32) if x.dtype == np.float64 else x for x in inputs]
        return results_of(thing, inputs, names, np.ones_like, **settings)

    return all_float32("float32 stays float32", results)


def all_float32(label: str, make: Make) -> Trial:
    """Return a trial of the dtype. make(own) returns arrays by name, computed from float32 arrays only."""

    def judge(observed: Any, repaired: Names) -> None:
        if not isinstance(observed, dict) or not observed:
            raise DamagedAnswer("no arrays")
        for name, array in observed.items():
            if not is_array(array):
                kind = type(array).__name__
                raise Fault(say("{name} is of type {kind} and must be an array", name=name, kind=kind))
            if array.dtype != np.float32:
                dtype = array.dtype
                raise Fault(say("{name} is {dtype}, although all inputs are float32", name=name, dtype=dtype))

    return Trial(label, make, judge)


def normal(*shape: int, seed: int = 1) -> Array:
    """Return standard normal random numbers in float64, the same ones each time."""
    return np.random.default_rng(seed).standard_normal(shape)


def random_parameters(layer: Any, dtype: Any = np.float64) -> Any:
    """Add normal random numbers to every parameter, so that no gain is 1 and no bias 0. Return the layer."""
    rng = np.random.default_rng(2)
    for _, parameter in layer.named_parameters():
        parameter.value = (parameter.value + rng.standard_normal(parameter.shape)).astype(dtype)
    return layer


def with_parameters_of(mine: Any, layer: Any) -> Any:
    """Give a layer the parameters of the learner's layer, in their order. Return the layer."""
    for parameter, own in zip(layer.parameters(), mine.parameters(), strict=True):
        parameter.value = own.value
    return layer
