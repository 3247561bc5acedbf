"""ForeignLayer: the base of the adapters, which give a function of another library the methods of a layer."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking.report import CheckRow
from npformer.checking.trees import is_real, leaves, map_tree
from npformer.nn.module import Parameter

# Differences with Richardson extrapolation are exact to about ten digits in float64. A gradient that was
# computed in float32 is right to seven.
TOLERANCES = {"complex": 1e-11, "difference": 3e-9}


class WrongBackward(Exception):
    """The backward pass cannot be run. The message is one sentence about its mistake.

    Args:
        message: The sentence.
        tensor: The name of the tensor that it concerns, or "backward".
    """

    def __init__(self, message: str, tensor: str = "backward") -> None:
        super().__init__(message)
        self.tensor = tensor

    def row(self, name: str) -> CheckRow:
        """Return the row of the report about the mistake."""
        return CheckRow(name, self.tensor, np.inf, "automatic differentiation", 0.0, None, str(self))


class Situation(NamedTuple):
    """The result of the backward pass in one situation in which it must return the same gradients."""

    name: str  # the name of the property, as the report prints it
    error: float
    how: str
    tolerance: float
    why: str = ""  # a sentence about the mistake

    def row(self, name: str) -> CheckRow:
        """Return the row of the report."""
        return CheckRow(name, self.name, self.error, self.how, self.tolerance, None, self.why)


class Graph(dict[str, Array]):
    """The cache of a foreign layer: the arrays that its backward pass may use, and the computation itself.

    Args:
        arrays: The outputs and views of the saved arrays, so that a change by the backward pass can be seen.
        outputs: The outputs as the library returned them.
        computation: Anything else that the backward pass of the adapter needs.
    """

    def __init__(self, arrays: dict[str, Array], outputs: Any, computation: Any) -> None:
        super().__init__(arrays)
        self.outputs, self.computation = outputs, computation


class ForeignLayer(ABC):
    """A function of another library as a layer: forward(*arrays) -> (y, cache) and backward(dy, cache) -> dx.

    Args:
        name: The name of the function.
        names: The names of its arguments.
        inputs: The arguments. A list, tuple or dict of arrays counts as several inputs.
        to_array: A function that turns an argument into a NumPy array of float64 or integers, or leaves it.
    """

    parameters: dict[str, Parameter]
    epsilon = float(np.finfo(float).eps)  # of the data type with the fewest digits

    def __init__(
        self, name: str, names: Sequence[str], inputs: Sequence[Any], to_array: Callable[[Any], Any]
    ) -> None:
        self.name = name
        self._structure = inputs
        self.inputs = [to_array(x) for x in leaves(list(inputs))]
        self.input_names = [
            leaf for prefix, x in zip(names, inputs, strict=True) for leaf in _named(prefix, x)
        ]
        self.parameters = {}
        self.holder: Any = None  # the module, whose random generators are restored before each forward pass
        self.functions: list[Any] = []  # the functions of the user, whose source may be shown
        self.notes: list[str] = []  # for the report
        self.reasons: dict[str, str] = {}  # why the last backward pass gave a tensor no gradient
        self.point: Sequence[Any] = self.inputs  # the inputs of the last forward pass
        self.settings: dict[str, Any] = {}  # and its settings
        self.is_random = False  # whether forward draws random numbers
        self.restore_generators: Callable[[], None] = lambda: None

    @property
    def is_rounded(self) -> bool:
        """True if the backward pass computes with fewer digits than float64."""
        return self.epsilon > float(np.finfo(float).eps)

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs (name, Parameter)."""
        yield from self.parameters.items()

    def arguments(self, flat: Sequence[Any]) -> list[Any]:
        """Return the arguments in their structure, from one value for each array."""
        values = iter(flat)
        return [map_tree(lambda _: next(values), x) for x in self._structure]

    def tolerance(self, tensor: str, method: str) -> float:
        """Return the largest error of the gradient of a tensor that passes, for "complex" or "difference"."""
        return TOLERANCES[method]

    @abstractmethod
    def forward(self, *inputs: Any, **settings: Any) -> tuple[Any, Graph]:
        """Return the output as NumPy arrays, and the cache."""

    @abstractmethod
    def backward(self, dy: Any, cache: Graph) -> Any:
        """Return the gradients of the real inputs and add those of the parameters to their .grad."""

    def situations(self, dy: Any, grads: dict[str, Array], *, hessian: bool) -> Iterator[Situation]:
        """Yield the errors of backward in situations that occur in use, at the point of the last forward.

        Args:
            dy: A gradient of the output.
            grads: The gradients of all tensors for this dy, by name.
            hessian: Yield a situation for second derivatives also where a note would do.
        """
        yield from ()


def named_outputs(y: Any) -> dict[str, Array]:
    """Return the outputs that are arrays of floats: "the output", or "output i" for one of several."""
    parts = list(leaves(y))
    names = ["the output"] if len(parts) == 1 else [f"output {i}" for i in range(len(parts))]
    return {n: part for n, part in zip(names, parts, strict=True) if is_array(part) and is_real(part)}


def argument_names(function: Any, skip: int, count: int) -> list[str]:
    """Return the names of the first arguments of a function, and "input i" where it has no name for one.

    Args:
        function: The function.
        skip: The number of leading arguments that are not inputs, such as ctx.
        count: The number of inputs.
    """
    try:
        signature = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions of compiled modules have no signature
        signature = []
    named = [p.name for p in signature if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][skip:]
    return [named[i] if i < len(named) else f"input {i}" for i in range(count)]


def single_or_tuple(gradients: Sequence[Array]) -> Any:
    """Return the gradients in the form of the protocol of a layer: an array, or a tuple for several."""
    return gradients[0] if len(gradients) == 1 else tuple(gradients)


def relative(found: Sequence[Array], right: Sequence[Array], floor: float = 0.0) -> float:
    """Return the norm of found - right, divided by the norm of right or by the floor.

    Args:
        found: Some arrays.
        right: Arrays of the same shapes.
        floor: The smallest number by which the norm of the difference is divided.
    """
    size = max(norm(right), floor, float(np.finfo(float).tiny))
    return norm([a - b for a, b in zip(found, right, strict=True)]) / size


def norm(arrays: Iterable[Any]) -> float:
    """Return the Euclidean norm of all entries of several arrays."""
    return float(np.sqrt(sum(float((np.asarray(a, np.float64) ** 2).sum()) for a in arrays)))


def smallest_size(dy: Any, grads: dict[str, Array]) -> float:
    """Return the number by which errors are divided at least: a gradient may be 0 up to rounding errors.

    Args:
        dy: A gradient of the output.
        grads: The gradients of all tensors for this dy.
    """
    return 1e-3 * max(norm(part for part in leaves(dy) if is_real(part)), norm(grads.values()))


def _named(prefix: str, tree: Any) -> Iterator[str]:
    """Yield a name for each leaf of an argument: its own name, and the key of each place in it."""
    if isinstance(tree, dict):
        for key, part in tree.items():
            yield from _named(f"{prefix}.{key}", part)
    elif isinstance(tree, (list, tuple)):
        for index, part in enumerate(tree):
            yield from _named(f"{prefix}.{index}", part)
    else:
        yield prefix
