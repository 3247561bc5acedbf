"""CheckTarget: a layer, a pair or a whole model as a function of named tensors.

For each evaluation the parameters are set to real or complex values. Afterwards they are restored.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from npformer.backend import Array, Generator, is_array
from npformer.errors import UserError, quantity
from npformer.nn.context import Context

Gradients: TypeAlias = dict[str, Any]  # the gradient of each tensor, by name


class CheckTarget:
    """A layer, or a pair (f, f_backward), with its inputs and settings.

    The attribute `tensors` is a dict from name to float64 array. It holds the real inputs of forward under
    the names of its arguments, and the parameters under their dotted names.

    Args:
        thing: A layer, or a pair (f, f_backward).
        inputs: The arguments of forward.
        settings: The keyword arguments of forward.
        randomize: Start gains and biases at random values.
        rng: The generator of these values.

    Raises:
        UserError: If thing has no forward or backward, or if there is nothing to check.
    """

    def __init__(
        self, thing: Any, inputs: Sequence[Any], settings: dict[str, Any], *, randomize: bool, rng: Generator
    ) -> None:
        self.forward, self.backward, self.parameters = take_apart(thing)
        self.settings = settings
        names = _argument_names(self.forward, len(inputs))
        self.inputs = dict(zip(names, inputs, strict=True))
        self.real_inputs = [name for name, x in self.inputs.items() if is_array(x) and x.dtype.kind == "f"]
        self.tensors = {name: np.array(self.inputs[name], np.float64) for name in self.real_inputs}
        for name, parameter in self.parameters.items():
            self.tensors[name] = _starting_point(np.array(parameter.value, np.float64), randomize, rng)
        if not self.tensors:
            raise UserError("nothing to check: give at least one array of floats, or a layer with parameters")

    def run(self, changes: dict[str, Array] | None = None) -> tuple[Any, Any]:
        """Evaluate forward on copies of the tensors, some of them replaced, and return (y, cache)."""
        values = self.tensors | (changes or {})
        with self._parameters_set(values):
            inputs = [np.array(values[n]) if n in values else x for n, x in self.inputs.items()]
            return self.forward(*inputs, **fresh_settings(self.forward, self.settings))

    def vjp(
        self, dy: Any, cache: Any, changes: dict[str, Array] | None = None, *, times: int = 1
    ) -> Gradients:
        """Run backward on zeroed gradients and return the gradients of all tensors by name.

        Args:
            dy: The gradient of the output.
            cache: The cache of run.
            changes: The tensors that were replaced in run.
            times: The number of times that backward runs.

        Raises:
            UserError: If backward does not return one gradient for each real input.
        """
        values = self.tensors | (changes or {})
        with self._parameters_set(values):
            for _ in range(times):
                returned = self.backward(dy, cache)
            grads = {name: np.array(p.grad) for name, p in self.parameters.items()}
        return self._name_returned(returned) | grads

    def _name_returned(self, returned: Any) -> Gradients:
        """Name the returned gradients: one for each real input, in the order of the arguments."""
        returned = returned if isinstance(returned, tuple) else (returned,)
        returned = [dx for dx in returned if dx is not None]
        if len(returned) != len(self.real_inputs):
            raise UserError(
                f"backward returned {quantity(len(returned), 'gradient')} and forward took "
                f"{quantity(len(self.real_inputs), 'real array')} ({', '.join(self.real_inputs) or 'none'}): "
                "return one gradient for each array, in their order"
            )
        return dict(zip(self.real_inputs, returned, strict=True))

    @contextmanager
    def _parameters_set(self, values: dict[str, Array]) -> Iterator[None]:
        """Set the parameters to values, and the gradients to zeros of their dtype, inside a with block."""
        before = {name: (p.value, p.grad) for name, p in self.parameters.items()}
        dtype = np.result_type(*values.values())  # complex if one of the tensors is complex
        try:
            for name, parameter in self.parameters.items():
                parameter.value = values[name]
                parameter.grad = np.zeros(values[name].shape, dtype)
            yield
        finally:
            for name, parameter in self.parameters.items():
                parameter.value, parameter.grad = before[name]


def fresh_settings(forward: Callable[..., Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of one evaluation. An integer rng seeds a new generator each time.

    If a forward function takes `context` but not `train`, then `train` and `rng` are passed as a context.
    """
    settings = dict(settings)
    if isinstance(settings.get("rng"), int):
        settings["rng"] = np.random.default_rng(settings["rng"])
    if isinstance(settings.get("context"), Context):
        settings["context"] = settings["context"].seeded()
    names = inspect.signature(forward).parameters
    if "context" in names and "train" not in names and {"train", "rng"} & settings.keys():
        settings["context"] = Context(settings.pop("train", False), settings.pop("rng", None))
    return settings


def take_apart(thing: Any) -> tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]:
    """Return (forward, backward, parameters by name)."""
    if isinstance(thing, tuple) and len(thing) == 2 and all(callable(f) for f in thing):
        return thing[0], thing[1], {}
    for method in ("forward", "backward"):
        if not callable(getattr(thing, method, None)):
            raise UserError(
                f"{type(thing).__name__} has no {method}: give a layer with forward and backward, "
                "or a pair of functions (f, f_backward)"
            )
    if hasattr(thing, "named_parameters"):
        parameters = dict(thing.named_parameters())
    else:  # a layer that is not a Module: its attributes with a value and a grad are its parameters
        parameters = {n: p for n, p in vars(thing).items() if hasattr(p, "value") and hasattr(p, "grad")}
    return thing.forward, thing.backward, parameters


def _argument_names(forward: Callable[..., Any], n_inputs: int) -> list[str]:
    """Return the names of the first arguments of forward."""
    names = [
        name
        for name, parameter in inspect.signature(forward).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if n_inputs > len(names):
        raise UserError(
            f"forward takes {quantity(len(names), 'array')} ({', '.join(names)}), and {n_inputs} "
            f"{'was' if n_inputs == 1 else 'were'} given: give one for each name"
        )
    return names[:n_inputs]


def _starting_point(value: Array, randomize: bool, rng: Generator) -> Array:
    """Return the value, plus noise if all entries are equal: gains at 1 and biases at 0 hide mistakes."""
    if randomize and value.size > 1 and (value == value.flat[0]).all():
        return value + 0.5 * rng.standard_normal(value.shape)
    return value
