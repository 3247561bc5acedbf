"""ReferenceLayer: the gradients of a kernel of low precision beside derivatives of a reference in float64."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.foreign.layer import TOLERANCES, ForeignLayer, Graph, Situation, relative
from npformer.checking.trees import is_real, leaves
from npformer.errors import UserError

SAFETY = 4.0  # the largest error is a few times the expected one: see rounding_error


class ReferenceLayer(ForeignLayer):
    """A layer whose forward pass is the reference in float64, and whose backward pass is that of the kernel.

    Args:
        kernel: The function in its own data type.
        reference: The same function in float64, with the same arguments and parameters.

    Raises:
        UserError: If the parameters of the two have different names.
    """

    def __init__(self, kernel: ForeignLayer, reference: ForeignLayer) -> None:
        self.name, self.inputs = kernel.name, kernel.inputs
        self.input_names, self.reasons = kernel.input_names, {}
        self.kernel, self.reference = kernel, reference
        self.epsilon = kernel.epsilon
        self.holder = kernel.holder
        self.functions, self.notes = kernel.functions, kernel.notes
        self._y: Any = None  # the last output
        if kernel.parameters.keys() != reference.parameters.keys():
            raise UserError(
                f"{kernel.name} has other parameters ({', '.join(kernel.parameters) or 'none'}) than the "
                f"reference ({', '.join(reference.parameters) or 'none'}): the names must be the same"
            )
        self.parameters = kernel.parameters

    def tolerance(self, tensor: str, method: str) -> float:
        """Return the error that roundings of the kernel's data type explain."""
        sizes = dict(zip(self.input_names, self.inputs, strict=True))
        sizes |= {name: parameter.value for name, parameter in self.parameters.items()}
        return max(TOLERANCES[method], rounding_error(self.kernel.epsilon, sizes, tensor, self._y))

    def forward(self, *inputs: Any, **settings: Any) -> tuple[Any, Graph]:
        """Run the reference in float64, and the kernel in its own data type for its graph."""
        for name, parameter in self.parameters.items():
            self.reference.parameters[name].value = parameter.value
        y, _ = self.reference.forward(*inputs, **settings)
        self._y = y
        if any(np.iscomplexobj(x) for x in (*inputs, *(p.value for p in self.parameters.values()))):
            return y, Graph({}, None, None)
        return y, self.kernel.forward(*inputs, **settings)[1]

    def backward(self, dy: Any, cache: Graph) -> Any:
        """Run the backward pass of the kernel."""
        returned = self.kernel.backward(dy, cache)
        self.reasons = self.kernel.reasons
        return returned

    def situations(self, dy: Any, grads: dict[str, Array], *, hessian: bool) -> Iterator[Situation]:
        """Yield the difference of the two forward passes.

        Args:
            dy: A gradient of the output.
            grads: The gradients of all tensors for this dy, by name.
            hessian: Yield a situation for second derivatives also where a note would do.
        """
        found = [
            np.asarray(part, np.float64)
            for part in leaves(self.kernel.forward(*self.inputs)[0])
            if is_real(part)
        ]
        y = self.reference.forward(*self.inputs)[0]
        right = [np.asarray(part) for part in leaves(y) if is_real(part)]
        error = relative(found, right)
        tolerance = max(self.tolerance(name, "difference") for name in (*self.parameters, *self.input_names))
        why = "" if error <= tolerance else f"the output of {self.name} is not that of the reference"
        yield Situation("y", error, "forward beside the reference", tolerance, why)


def rounding_error(epsilon: float, tensors: dict[str, Any], tensor: str, y: Any) -> float:
    """Return the largest relative error of a gradient that rounding explains.

    A sum of K rounded terms has a relative error of about √K u, where u = epsilon / 2 is the largest relative
    error of one rounding. The sums of a forward and a backward pass run over one axis, or over all positions
    at which a tensor is used.

    Args:
        epsilon: The distance of 1 from the next number of the data type.
        tensors: The inputs and parameters by name.
        tensor: The name of the tensor.
        y: The output.

    Source: Higham and Mary 2019 (the probabilistic bound √K u).
    """
    outputs = [np.asarray(part) for part in leaves(y) if is_real(part)]
    axes = [n for array in [*tensors.values(), *outputs] for n in np.shape(array)]
    positions = sum(part.size for part in outputs) / max(1, np.size(tensors[tensor]))
    return float(SAFETY * np.sqrt(max([*axes, positions, 1])) * epsilon / 2)
