"""CheckTarget: a layer, a pair or a whole model as a function of named tensors.

For each evaluation the parameters are set to real or complex values. Afterwards they are restored.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from npformer.backend import Array, Generator, is_array
from npformer.checking.foreign.layer import ForeignLayer
from npformer.checking.holders import named_parameters
from npformer.checking.report import CheckRow
from npformer.checking.surroundings import Generators, closure
from npformer.checking.trace import files_of
from npformer.checking.trees import copy_tree
from npformer.errors import UserError, quantity
from npformer.nn.context import Context
from npformer.nn.fixed import FixedParameter
from npformer.nn.module import Module

RANGE = 4  # standard deviations of the logarithms: an entry below this range is small by chance
TOLERANCE = {"complex": 1e-11, "difference": 1e-6}  # the largest errors that pass

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
        self.foreign = thing if isinstance(thing, ForeignLayer) else None
        self.settings = settings_of(self.forward, settings)
        names = (
            self.foreign.input_names
            if self.foreign
            else _argument_names(self.forward, len(inputs), self.settings)
        )
        self.inputs = dict(zip(names, inputs, strict=True))
        self.real_inputs = [name for name, x in self.inputs.items() if is_array(x) and x.dtype.kind == "f"]
        self.tensors = {name: np.array(self.inputs[name], np.float64) for name in self.real_inputs}
        given = [
            *(self.inputs[name] for name in self.real_inputs),
            *(p.value for p in self.parameters.values()),
        ]
        self.given_float32 = any(array.dtype == np.float32 for array in given)
        self.given = {name: np.array(p.value, np.float64) for name, p in self.parameters.items()}
        for name, parameter in self.parameters.items():
            self.tensors[name] = _starting_point(np.array(parameter.value, np.float64), randomize, rng)
        self.generators: Generators | None = None  # restored before each forward pass, if one is given
        self._written: list[str] | None = None  # see writes_noted
        self._scaled: dict[str, Array] | None = None  # the tensors whose scales are known
        self._scales: dict[str, Array] = {}
        if not any(value.size for value in self.tensors.values()):
            self.refuse_complex_inputs()
            raise UserError("nothing to check: give at least one array of floats, or a layer with parameters")

    def refuse_complex_inputs(self) -> None:
        """Raise UserError if an input is complex, which may be the cause of what cannot be checked."""
        for name, x in self.inputs.items():
            if is_array(x) and x.dtype.kind == "c":
                raise UserError(
                    f"{name} holds complex numbers: give real ones, since gradients are checked for those"
                )

    def run_twice_as_long(self) -> None:
        """Evaluate forward on inputs whose first axis is repeated."""
        with self._parameters_set(self.tensors):
            inputs = [self.tensors.get(name, x) for name, x in self.inputs.items()]
            longer = [np.concatenate([x, x]) if is_array(x) and x.ndim else x for x in inputs]
            self.forward(*longer, **fresh_settings(self.settings))

    def run(self, changes: dict[str, Array] | None = None) -> tuple[Any, Any]:
        """Evaluate forward on copies of the tensors, some of them replaced, and return (y, cache).

        Raises:
            UserError: If forward does not return a pair.
        """
        values = self.tensors | (changes or {})
        if self.generators is not None:
            self.generators.restore()
        with self._parameters_set(values):
            # if one tensor is complex, all are, so that np.zeros_like(x) takes complex numbers as well
            dtype = np.result_type(*values.values())
            copies = {name: np.array(values[name], dtype) for name in self.real_inputs}
            inputs = [copies.get(name, x) for name, x in self.inputs.items()]
            result = self.forward(*inputs, **fresh_settings(self.settings))
            if self._written is not None:
                self._written += [name for name in copies if not _equal(copies[name], values[name])]
        if not isinstance(result, tuple) or len(result) != 2:
            raise UserError(
                f"forward returned {_kind(result)}: return the pair (y, cache), with None for no cache"
            )
        return result

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
            for left in reversed(range(times)):  # a pass that writes into dy must not change the next one
                returned = self.backward(copy_tree(dy) if left else dy, cache)
            grads = {name: np.array(p.grad) for name, p in self.parameters.items()}
        return self._name_returned(returned) | grads

    @property
    def scales(self) -> dict[str, Array]:
        """The scales of the present tensors, by name."""
        if self._scaled is not self.tensors:
            self._scaled = self.tensors
            self._scales = {name: scales_of(value) for name, value in self.tensors.items()}
        return self._scales

    def tolerance(self, tensor: str, method: str) -> float:
        """Return the largest error of the gradient of a tensor that passes, for "complex" or "difference"."""
        return self.foreign.tolerance(tensor, method) if self.foreign else TOLERANCE[method]

    def files(self) -> set[str]:
        """Return the files in which the forward and the backward pass are written, without this package's."""
        functions = self.foreign.functions if self.foreign else (self.backward, self.forward)
        return files_of(*functions)

    def situation_rows(self, name: str, dy: Any, grads: Gradients, *, hessian: bool) -> list[CheckRow]:
        """Return a row for each situation in which the library of a foreign layer runs its backward pass.

        Args:
            name: The name of the checked object.
            dy: A gradient of the output.
            grads: The gradients of all tensors for this dy, by name.
            hessian: Fail if the second derivatives are wrong, where a note would do.
        """
        assert self.foreign is not None
        if self.generators is not None:
            self.foreign.restore_generators, self.foreign.is_random = self.generators.restore, True
        self.run()  # the point at which the situations are tried
        with self._parameters_set(self.tensors):
            return [s.row(name) for s in self.foreign.situations(dy, grads, hessian=hessian)]

    def _name_returned(self, returned: Any) -> Gradients:
        """Name the returned gradients: one for each real input, in the order of the arguments."""
        alone = isinstance(returned, tuple) and len(self.inputs) == len(self.real_inputs) == 1
        if alone and sum(dx is not None for dx in returned) == 1:
            raise UserError(
                f"backward returned {_kind(returned)}: return the array for one input, "
                "and a tuple of arrays for several"
            )
        returned = returned if isinstance(returned, tuple) else (returned,)
        returned = [dx for dx in returned if dx is not None]
        if len(returned) != len(self.real_inputs):
            whole = [name for name, x in self.inputs.items() if is_array(x) and x.dtype.kind in "iu"]
            raise UserError(
                f"backward returned {quantity(len(returned), 'gradient')} and forward took "
                f"{quantity(len(self.real_inputs), 'real array')} ({', '.join(self.real_inputs) or 'none'}"
                f"{'; integers: ' + ', '.join(whole) if whole else ''}): "
                "return one gradient for each array of real numbers, in their order"
            )
        return dict(zip(self.real_inputs, returned, strict=True))

    @contextmanager
    def moved_to(self, tensors: dict[str, Array]) -> Iterator[None]:
        """Replace the tensors inside a with block."""
        before, self.tensors = self.tensors, tensors
        try:
            yield
        finally:
            self.tensors = before

    @contextmanager
    def writes_noted(self) -> Iterator[list[str]]:
        """Collect in a list, inside a with block, the names of inputs and parameters that a pass modifies."""
        self._written = []
        try:
            yield self._written
        finally:
            self._written = None

    @contextmanager
    def _parameters_set(self, values: dict[str, Array]) -> Iterator[None]:
        """Set the parameters to values, and the gradients to zeros of their dtype, inside a with block."""
        before = {name: (p.value, p.grad) for name, p in self.parameters.items()}
        dtype = np.result_type(*values.values())  # complex if one of the tensors is complex
        try:
            for name, parameter in self.parameters.items():
                parameter.value = np.array(values[name], dtype)
                parameter.grad = np.zeros(values[name].shape, dtype)
            yield
            if self._written is not None:
                self._written += [n for n, p in self.parameters.items() if not _equal(p.value, values[n])]
        finally:
            for name, parameter in self.parameters.items():
                parameter.value, parameter.grad = before[name]


def settings_of(forward: Callable[..., Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings as forward takes them.

    If forward takes `context` but not `train`, then `train` and `rng` become a context.
    """
    names = inspect.signature(forward).parameters
    if "context" not in names or "train" in names or not {"train", "rng"} & settings.keys():
        return settings
    others = {name: value for name, value in settings.items() if name not in ("train", "rng")}
    return others | {"context": Context(settings.get("train", False), settings.get("rng"))}


def fresh_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of one evaluation, with generators that start anew each time.

    Args:
        settings: The settings that settings_of returned. An integer rng is the seed of a generator.
    """
    return {name: _fresh(value, is_rng=name == "rng") for name, value in settings.items()}


def _fresh(value: Any, *, is_rng: bool) -> Any:
    if isinstance(value, Context):
        return replace(value, rng=_fresh(value.rng, is_rng=True))
    if is_rng and isinstance(value, int):
        return np.random.default_rng(value)
    return copy.deepcopy(value) if isinstance(value, np.random.Generator) else value


def _equal(a: Any, b: Array) -> bool:
    return a is b or np.array_equal(a, b, equal_nan=True)


def _kind(result: Any) -> str:
    if isinstance(result, tuple):
        return f"a tuple of {len(result)}"
    return f"an array of shape {result.shape}" if is_array(result) else f"{type(result).__name__}"


def take_apart(thing: Any) -> tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]:
    """Return (forward, backward, parameters by name)."""
    if isinstance(thing, tuple) and len(thing) == 2 and all(callable(f) for f in thing):
        return thing[0], thing[1], _learned(closure(thing))
    if inspect.ismethod(thing):
        raise UserError(f"{thing.__qualname__} is a method: give the layer to which it belongs")
    if inspect.isfunction(thing):
        name = thing.__name__
        raise UserError(f"{name} is one function: give the pair ({name}, {name}_backward), or a layer")
    for method in ("forward", "backward"):
        if not callable(getattr(thing, method, None)):
            raise UserError(
                f"{type(thing).__name__} has no {method}: give a layer with forward and backward, "
                "or a pair of functions (f, f_backward)"
            )
    if isinstance(thing, type):
        raise UserError(f"{thing.__name__} is a class: give a layer, as {thing.__name__}() makes one")
    own = getattr(thing, "named_parameters", None)
    if isinstance(thing, Module) or not callable(own):  # a Module does not look in every kind of holder
        return thing.forward, thing.backward, _learned(thing)
    return thing.forward, thing.backward, dict(own())


def _learned(holder: Any) -> dict[str, Any]:
    """Return the parameters by name, without those that are frozen and get no gradient."""
    return {name: p for name, p in named_parameters(holder) if not isinstance(p, FixedParameter)}


def _argument_names(forward: Callable[..., Any], n_inputs: int, settings: Iterable[str]) -> list[str]:
    """Return the names of the first arguments of forward.

    Raises:
        UserError: If forward takes fewer arguments, or needs more.
    """
    known = inspect.signature(forward).parameters
    names = [name for name, p in known.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [name for name in names if known[name].default is inspect.Parameter.empty]
    were = f"{n_inputs} {'was' if n_inputs == 1 else 'were'} given"
    if n_inputs > len(names):
        raise UserError(
            f"forward takes {quantity(len(names), 'array')} ({', '.join(names)}), and {were}: "
            "give at most one for each name"
        )
    if set(needed) - {*names[:n_inputs], *settings}:
        raise UserError(
            f"forward needs {quantity(len(needed), 'argument')} ({', '.join(needed)}), and {were}: "
            "give one for each (on the command line, one --shape for each)"
        )
    return names[:n_inputs]


def _starting_point(value: Array, randomize: bool, rng: Generator) -> Array:
    """Return the value, plus noise if all entries are equal: gains at 1 and biases at 0 hide mistakes."""
    if randomize and value.size and (value == value.flat[0]).all():
        return value + 0.5 * rng.standard_normal(value.shape)
    return value


def scales_of(x: Array) -> Array:
    """Return the size of each entry of a tensor, an array of its shape.

    An entry that is 0, or small by chance beside the others, has the scale of the smallest usual entry: else
    its step would vanish in the rounding errors of the output. If all entries are 0, the scale is 1.
    """
    sizes = np.abs(x)
    usual = np.log(sizes[(sizes > 0) & np.isfinite(sizes)])
    if not usual.size:
        return np.ones(x.shape)
    least = np.exp(usual.mean() - RANGE * usual.std())
    return np.where(sizes > 0, np.maximum(sizes, least), np.exp(usual.mean()))
