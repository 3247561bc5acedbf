"""Parameter and Module: a tree of layers whose parameters can share one buffer.

A layer holds parameters and settings, but no activations. The arrays that the backward pass needs are in the
cache that forward returns. So forward may run many times before the first backward pass.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Self

import numpy as np

from npformer.backend import Array, array_module, is_array, like, to_backend, to_numpy
from npformer.errors import UserError


class Parameter:
    """A learned array `value` and its accumulated gradient `grad`, which has the same shape."""

    def __init__(self, value: Array) -> None:
        self.value = value
        self.grad = array_module(value).zeros_like(value)
        self.buffer: Any = (
            None  # the array `values` of the flattened model, of which `value` is a view; or None
        )

    @property
    def grad(self) -> Array:
        """The accumulated gradient."""
        self._is_zero = False  # the caller may write into the array
        return self._grad

    @grad.setter
    def grad(self, grad: Array) -> None:
        self._grad, self._is_zero = grad, False

    def zero_grad(self) -> None:
        """Set the gradient to 0."""
        self._grad[...] = 0
        self._is_zero = True

    def accumulate(self, gradient: Any, *, at: Any = ...) -> None:
        """Add a gradient to `grad`.

        Args:
            gradient: An array, or a gradient that a kernel has not evaluated yet (see kernels/lazy.py). An
                unevaluated product is written directly into `grad` if `grad` is known to be zero: that is,
                if nothing was accumulated and `grad` was not read since the last call of zero_grad.
            at: The index of the part of the parameter to which the gradient belongs. The default is the whole
                parameter. An index is allowed only if the gradient is an array.
        """
        if hasattr(gradient, "add_to"):
            gradient.add_to(self._grad, is_zero=self._is_zero)
        else:
            self._grad[at] += gradient
        self._is_zero = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value and of the gradient."""
        return self.value.shape

    def __repr__(self) -> str:
        return f"Parameter{tuple(self.value.shape)} {self.value.dtype}"


class Module:
    """The base class of all layers and models.

    Its children are the attributes that are Parameters, Modules or lists of Modules. A subclass defines
    forward(x, ...) -> (y, cache) and backward(dy, cache) -> dx. backward also adds the gradients of the
    parameters to their `grad`. For inference, layer(x, ...) returns y alone.
    """

    forward: Any
    backward: Any

    values: Any = None  # (P,) all parameters of a flattened module, one after the other (see flatten)
    grads: Any = None  # (P,) their gradients, in the same order
    has_ponder_cost = False  # True if the loss contains ponder_cost(cache), and backward takes dponder=
    supports_packing = False  # True if forward takes packed=True, which skips the computation at padding

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        """Return the output of forward without the cache, for inference."""
        output, _ = self.forward(*inputs, **settings)
        return output

    def __repr__(self) -> str:
        return "\n".join(self._tree(""))

    def _tree(self, label: str) -> list[str]:
        """Return the lines of __repr__: one for each module, with its parameters.

        Neighbouring modules with equal lines, such as the layers of a stack, are printed once.
        """
        children = list(self.children())
        shapes = [f"{name} {child.shape}" for name, child in children if isinstance(child, Parameter)]
        lines = [f"{label}{type(self).__name__}" + (f"({', '.join(shapes)})" if shapes else "")]
        trees = [(name, child._tree("")) for name, child in children if isinstance(child, Module)]
        for tree, equal in groupby(trees, key=lambda pair: pair[1]):
            names = [name for name, _ in equal]
            label = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
            lines += [f"  {label}: {tree[0]}", *(f"  {line}" for line in tree[1:])]
        return lines

    def children(self) -> Iterator[tuple[str, Parameter | Module]]:
        """Yield pairs (name, Parameter or Module) in the order of their definition."""
        for name, attribute in vars(self).items():
            if isinstance(attribute, (Parameter, Module)):
                yield name, attribute
            elif isinstance(attribute, (list, tuple)):
                for index, item in enumerate(attribute):
                    if isinstance(item, Module):
                        yield f"{name}.{index}", item

    def modules(self) -> list[Module]:
        """Return this module and all modules below it, each one once."""
        modules = {id(self): self}
        for _, child in self.children():
            if isinstance(child, Module):
                modules.update({id(module): module for module in child.modules()})
        return list(modules.values())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs (dotted name, Parameter).

        A tied parameter, which several modules share, occurs once, under its first name.
        """
        seen = set()
        for name, parameter in self._named_parameters(""):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter

    def _named_parameters(self, prefix: str) -> Iterator[tuple[str, Parameter]]:
        for name, child in self.children():
            if isinstance(child, Parameter):
                yield prefix + name, child
            else:
                yield from child._named_parameters(f"{prefix}{name}.")

    def parameters(self) -> list[Parameter]:
        """Return all parameters, each one once."""
        return [parameter for _, parameter in self.named_parameters()]

    def count_parameters(self) -> int:
        """Return the number of entries of all parameters together."""
        return sum(parameter.value.size for parameter in self.parameters())

    def zero_grad(self) -> None:
        """Set all gradients to 0. Call it before the backward passes of a training step."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def flatten(self) -> Self:
        """Copy all parameters into one buffer, `values`, and all gradients into another, `grads`.

        Each parameter becomes a view of the two buffers. So the optimizer updates one array instead of one
        array for each parameter, and the norm of all gradients is the norm of one array.

        Returns:
            The module itself.

        Raises:
            UserError: If this module is a part of a larger model that was flattened before.
        """
        parameters = self.parameters()
        if any(p.buffer is not None and p.buffer is not self.values for p in parameters):
            raise UserError(
                f"this {type(self).__name__} shares parameters with a larger model, in whose buffers they "
                "lie: flatten, move, optimize or replicate the whole model"
            )
        xp = array_module(parameters[0].value)
        values = xp.concatenate([p.value.reshape(-1) for p in parameters])
        grads = xp.concatenate([p.grad.reshape(-1) for p in parameters])
        self._view(parameters, values, grads)
        return self

    def _view(self, parameters: list[Parameter], values: Array, grads: Array) -> None:
        """Make the parameters views of these two buffers."""
        self.values, self.grads = values, grads
        start = 0
        for parameter in parameters:
            shape, end = parameter.value.shape, start + parameter.value.size
            parameter.value = values[start:end].reshape(shape)
            parameter.grad = grads[start:end].reshape(shape)
            parameter.buffer = values
            start = end

    def replicate(self) -> Self:
        """Return a copy that shares the parameter values and has its own gradients.

        In parallel training, each worker computes its part of a batch on such a copy.
        """
        self._require_flat()
        # the second argument of deepcopy lists the objects that are not copied: the copy shares the values of
        # the parameters and the position tables. _view then replaces the gradients
        shared = [a for module in self.modules() for a in vars(module).values() if is_array(a)]
        shared += [array for p in self.parameters() for array in (p.value, p.grad)]
        replica = copy.deepcopy(self, {id(array): array for array in shared})
        replica._view(replica.parameters(), self.values, array_module(self.grads).zeros_like(self.grads))
        return replica

    def to(self, backend: str) -> Self:
        """Move the module to "numpy" or "cupy", with its gradients and position tables, and return it."""
        return self._convert(lambda array: to_backend(array, backend))

    def astype(self, dtype: Any) -> Self:
        """Convert the module to a dtype, such as float64 for gradient checks, and return it."""
        return self._convert(lambda array: array.astype(dtype))

    def _convert(self, change: Callable[[Any], Any]) -> Self:
        self.flatten()  # raises an error for a part of a larger model before anything is changed
        for parameter in self.parameters():
            parameter.value, parameter.grad = change(parameter.value), change(parameter.grad)
        for module in self.modules():
            for name, attribute in vars(module).items():
                if is_array(attribute) and name not in ("values", "grads") and attribute.dtype.kind == "f":
                    setattr(module, name, change(attribute))
        return self.flatten()

    def state_dict(self) -> dict[str, Array]:
        """Return a dict from the dotted name of each parameter to a copy of its values on the host."""
        return {name: np.array(to_numpy(p.value)) for name, p in self.named_parameters()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the values of a dict that state_dict() returned.

        Raises:
            UserError: If a name is missing or unknown, or if a shape differs. The model is then unchanged.
        """
        parameters = dict(self.named_parameters())
        state = {name: np.asarray(value) for name, value in state.items()}
        for name in sorted(parameters.keys() ^ state.keys()):
            where = "missing from" if name in parameters else "not a parameter of this model but in"
            raise UserError(f"{name} is {where} the saved state: it was saved from another configuration")
        for name, parameter in parameters.items():
            if parameter.shape != state[name].shape:
                raise UserError(
                    f"{name} has shape {state[name].shape} in the saved state and {parameter.shape} "
                    "in this model: it was saved from another configuration"
                )
        for name, parameter in parameters.items():
            parameter.value[...] = like(state[name], parameter.value)

    def _require_flat(self) -> None:
        if self.values is None:
            self.flatten()
