"""The steps of a recorded page: the arrays of a forward and backward pass, as a live page would compute them.

Each step has the path, the operation and the inputs that it has on the tape of a live page
(web/engine/tape.js), so that the page shows both in the same way. The numbers are those of the package:
the arrays come from the caches, and the gradients from the backward methods of the layers. What a layer
computes between its input and its output is computed again with the plain pairs of npformer.functional.

A Recording collects the steps. The other modules of this package add those of one kind of layer each: an
emitter is a function that does so for one call of a layer. The steps of a layer without an emitter are
called "recorded": the page shows their numbers, but not how they were computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.checking.holders import named_parameters
from npformer.errors import UserError
from npformer.explorer.call_tree import Call, calls_in
from npformer.explorer.model_data import explorer_name
from npformer.functional.caches import members
from npformer.nn.fixed import FixedParameter
from npformer.nn.module import Module, Parameter

LARGEST_PAGE = 10_000_000  # numbers of a recorded page, which then has 53 MB


@dataclass(eq=False)
class RecordedStep:
    """One array of a pass, with its gradient and the way in which it was made from other arrays.

    Attributes:
        path: Its name.
        op: The operation that made it.
        data: Its values.
        grad: The derivative of the loss with respect to each value, or None if it is not known.
        inputs: The arrays from which it was made.
        note: What else the operation needed, as JSON values.
        line: The key of its source lines in `step_lines.STEP_LINES`.
    """

    path: str
    op: str
    data: Array
    grad: Array | None
    inputs: list[RecordedStep]
    note: dict[str, Any]
    line: str


class Selection(NamedTuple):
    """The part of a large parameter that a page carries: some entries of one axis."""

    axis: int
    ids: Array  # (N,) in ascending order


@dataclass
class Recording:
    """The steps of a pass, in the order in which they were computed.

    Args:
        model: The model, or any other object with parameters, with their gradients.
        parts: The parts of the parameters of which a page carries a part only, by the id of the parameter.
        columns: The tokens of the vocabulary whose logits a page carries, or None for all.
        carries: A function that says whether the page carries a parameter.
        gradients: True if the page carries the gradients of matrices too.
        unknown_line: The key of the source lines of what no emitter knows.
    """

    model: Any
    parts: dict[int, Selection] = field(default_factory=dict)
    columns: Array | None = None
    carries: Callable[[Parameter], bool] = lambda parameter: True
    gradients: bool = True
    unknown_line: str = "constant"
    steps: list[RecordedStep] = field(default_factory=list)
    names: dict[str, RecordedStep] = field(default_factory=dict)
    # the step of each array, by the id of the array, which is kept so that no other one gets its id
    _by_array: dict[int, tuple[Array, RecordedStep]] = field(default_factory=dict)
    _parameters: dict[int, RecordedStep] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, parameter in named_parameters(self.model):
            if self.carries(parameter):
                path = path_of(name)
                value, grad = self.shown(parameter, parameter.value), None
                if (self.gradients or value.ndim == 1) and not isinstance(parameter, FixedParameter):
                    grad = self.shown(parameter, _grad_of(parameter))
                step = self.record("parameter", path, value, grad, squeeze=False)
                self._parameters[id(parameter)] = step

    def shown(self, parameter: Parameter, array: Array) -> Array:
        """Return the part of the values or of the gradient of a parameter that the page carries."""
        if id(parameter) not in self.parts:
            return array
        axis, ids = self.parts[id(parameter)]
        return array.take(ids, axis)

    def record(
        self,
        op: str,
        path: str,
        data: Array,
        grad: Array | None,
        inputs: list[RecordedStep | None] | None = None,
        note: dict[str, Any] | None = None,
        line: str | None = None,
        *,
        squeeze: bool = True,
    ) -> RecordedStep:
        """Add a step.

        Args:
            op: The operation.
            path: The name of the step. A layer that is called again gets a number behind it.
            data: The values, with a batch axis of length 1.
            grad: The gradient, of the same shape.
            inputs: The steps from which it was made. If one is None, since the page does not carry it, the
                operation is only recorded.
            note: What else the operation needed.
            line: The key of the source lines. The default is the operation.
            squeeze: Leave out the batch axis.
        """
        inputs, line = inputs or [], line or op
        if None in inputs:
            op, note = "recorded", (note or {}) | {"missing": True}
        path = path.removeprefix(".")  # of a layer without a name
        unique, count = path, 1
        while unique in self.names:
            count += 1
            unique = f"{path}@{count}"
        known = [step for step in inputs if step is not None]
        shown, dshown = data, grad
        if squeeze:
            shown, dshown = _without_batch(data), None if grad is None else _without_batch(grad)
        step = RecordedStep(unique, op, shown, dshown, known, note or {}, line)
        self.steps.append(step)
        self.names[unique] = step
        self.link(data, step)
        return step

    def record_transposed(
        self, path: str, data: Array, grad: Array, matrix: RecordedStep | None
    ) -> RecordedStep:
        """Add a transposed matrix.

        Args:
            path: The name of the step.
            data: The values, of shape (M, N).
            grad: The gradient, of the same shape.
            matrix: The step of the matrix, of shape (N, M), or None if the page does not carry it.
        """
        note = {"kind": "transpose"}
        return self.record("rearrange", path, data, grad, [matrix], note, "transpose", squeeze=False)

    def alias(self, path: str, step: RecordedStep) -> RecordedStep:
        """Give a step a further name, unless another step has it."""
        self.names.setdefault(path.removeprefix("."), step)
        return step

    def named(self, path: str) -> RecordedStep:
        """Return the step with a name."""
        return self.names[path.removeprefix(".")]

    def link(self, array: Array, step: RecordedStep) -> None:
        """Let an array stand for a step that shows a part of it."""
        self._by_array[id(array)] = array, step

    def parameter(self, parameter: Parameter) -> RecordedStep | None:
        """Return the step of a parameter, or None if the page does not carry it."""
        return self._parameters.get(id(parameter))

    def step_of(self, array: Array) -> RecordedStep | None:
        """Return the step whose values an array holds, or None if there is none."""
        if id(array) in self._by_array:
            return self._by_array[id(array)][1]
        wanted = _without_batch(array)
        same = (s for s in reversed(self.steps) if s.op != "parameter" and np.array_equal(s.data, wanted))
        return next(same, None)

    def emit(self, call: Call) -> None:
        """Add the steps of a call, and of the calls of other layers during it."""
        emitter, path = _emitter_of(type(call.module)), path_of(call.path)
        if emitter is None:
            _emit_children(self, call, path)
            return
        for index, array in enumerate(filter(_is_float, call.inputs)):
            if self.step_of(array) is None:  # computed by a layer without an emitter
                name = f"{path}.x{index or ''}"
                self.record("recorded", name, array, None, line=self.unknown_line)
        emitter(self, call, path)

    def emit_unknown(self, call: Call, path: str, line: str) -> None:
        """Add the arrays in the cache of a layer that is not known here, and its output.

        Args:
            call: The call of the layer.
            path: The path of the layer.
            line: The key of the source lines.
        """
        values = {id(parameter.value) for _, parameter in named_parameters(self.model)}
        for name, array in arrays_in(call.cache):
            if id(array) not in values and self.step_of(array) is None:
                self.record("recorded", f"{path}.{name}", array, None, line=line)
        if not isinstance(call.output, np.ndarray):
            return
        step = self.step_of(call.output)
        if step is None:
            before = [*call.inputs, *(child.output for child in call.children)]
            inputs = [self.step_of(each) for each in before if _is_float(each)]
            known: list[RecordedStep | None] = [each for each in inputs if each is not None]
            step = self.record("recorded", f"{path}.y", call.output, call.d_output, known, line=line)
        self.alias(f"{path}.y", step)

    def emit_arrays(self, call: Call, line: str) -> None:
        """Add the outputs of all layers that were called and the arrays in their caches, no arithmetic."""
        for each in (*calls_in(call), call):
            self.emit_unknown(each, path_of(each.path), line)


def arrays_in(cache: Any) -> list[tuple[str, Array]]:
    """Return pairs (dotted name, array) of the arrays of floats in a cache tree."""
    found = [("cache", cache)] if _is_float(cache) else []
    for name, member in members(cache):
        if _is_float(member):
            found.append((name, member))
        else:
            found += [(f"{name}.{below}", array) for below, array in arrays_in(member)]
    return found


def _is_float(thing: Any) -> bool:
    return isinstance(thing, np.ndarray) and thing.dtype.kind == "f"


def _grad_of(parameter: Parameter) -> Array:
    return parameter.grad if parameter.has_grad else np.zeros_like(parameter.value)


def _without_batch(array: Array) -> Array:
    """Return an array without a first axis of length 1."""
    return array[0] if array.ndim > 1 and array.shape[0] == 1 else array


def path_of(name: str) -> str:
    """Return the name of a layer or a parameter on the page."""
    return explorer_name(f"{name}.").removesuffix(".")


Emitter = Callable[[Recording, Call, str], None]  # of a call of a layer with a path
_EMITTERS: dict[type[Module], Emitter] = {}


def emits(*kinds: type[Module]) -> Callable[[Emitter], Emitter]:
    """Return a decorator that makes a function the emitter of some classes of layers."""

    def register(emitter: Emitter) -> Emitter:
        _EMITTERS.update(dict.fromkeys(kinds, emitter))
        return emitter

    return register


def _emitter_of(kind: type) -> Emitter | None:
    """Return the emitter of a class of layers, or None.

    A subclass has that of its base class, unless it replaces one of its methods: then it may compute
    something else.
    """
    for base in kind.__mro__:
        if base in _EMITTERS:
            return _EMITTERS[base]
        parents = [name for parent in base.__mro__[1:] for name in vars(parent)]
        if any(name in parents and not name.startswith("__") for name in vars(base)):
            return None
    return None


def is_known(kind: type) -> bool:
    """Return whether a class of layers has an emitter."""
    return _emitter_of(kind) is not None


def _emit_children(recording: Recording, call: Call, path: str) -> None:
    """Add the steps of the layers that a layer calls, and its own output if that is another array."""
    for child in call.children:
        recording.emit(child)
    if isinstance(call.output, np.ndarray) and recording.step_of(call.output) is None:
        recording.emit_unknown(call, path, recording.unknown_line)


def steps_data(recording: Recording) -> dict[str, Any]:
    """Return the steps of a recording as JSON values, without their numbers."""
    number = {id(step): index for index, step in enumerate(recording.steps)}
    steps = [
        {
            "path": step.path,
            "op": step.op,
            "shape": list(step.data.shape),
            "inputs": [number[id(each)] for each in step.inputs],
            "line": step.line,
            "note": step.note,
            "grad": step.grad is not None,
        }
        for step in recording.steps
    ]
    aliases = {name: number[id(step)] for name, step in recording.names.items() if name != step.path}
    return {"steps": steps, "aliases": aliases}


def arrays_of(recording: Recording) -> list[Array]:
    """Return the values of each step, followed by their gradient if it is known."""
    return [array for step in recording.steps for array in (step.data, step.grad) if array is not None]


def require_size(arrays: list[Array], owner: str, what: str) -> None:
    """Check that a page has room for its arrays.

    Args:
        arrays: The arrays.
        owner: What they belong to, for the message.
        what: The noun for what must be smaller, for the message.

    Raises:
        UserError: If it has not.
    """
    count = sum(array.size for array in arrays)
    if count > LARGEST_PAGE:
        raise UserError(
            f"the arrays of {owner} have {count:,} numbers, and a page has room for {LARGEST_PAGE:,}: give a "
            f"shorter {what}"
        )
