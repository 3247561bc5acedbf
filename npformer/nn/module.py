"""Parameter and Module: a tree of layers whose parameters can share one buffer.

A layer holds parameters and settings, but no activations. The arrays that the backward pass needs are in the
cache that forward returns. So forward may run many times before the first backward pass.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any, Self

import numpy as np

from npformer.backend import Array, array_module, is_array, is_cupy, like, to_backend, to_numpy
from npformer.errors import UserError
from npformer.nn.holders import held_objects

ON_HOST = np.empty(0)  # any array on the host


class FlatBuffer:
    """All parameters of a flattened model in one array, and all their gradients in another.

    The array of gradients is allocated when it is first used, since a model that only computes outputs has
    no gradients.

    Args:
        values: The parameters, one after the other, of shape (P,). None if each has an array of its own, and
            a gradient of its own, until `flatten` joins them.
        grads: The gradients, in the same order, of shape (P,). None allocates them at their first use.
    """

    def __init__(self, values: Array | None, grads: Array | None = None) -> None:
        self.values, self._grads = values, grads

    @property
    def reference(self) -> Array:
        """An array on the device of the parameters: on the host, if they lie apart."""
        return ON_HOST if self.values is None else self.values

    @property
    def has_grads(self) -> bool:
        """True if the array of gradients was allocated."""
        return self._grads is not None

    @property
    def grads(self) -> Array:
        """The gradients, of shape (P,), in the order of the values, which are there."""
        if self._grads is None:
            assert self.values is not None
            self._grads = array_module(self.values).zeros_like(self.values)
        return self._grads


class Parameter:
    """A learned array `value` and its accumulated gradient `grad`, which has the same shape.

    The gradient is allocated when it is first used.
    """

    def __init__(self, value: Array) -> None:
        self.value = value
        self._grad: Any = None
        self._is_zero, self._grad_is_view = False, False
        # of the flattened model: its buffer, and the part of the buffer of which `value` is a view
        self.buffer: FlatBuffer | None = None
        self._part = slice(None)

    @property
    def grad(self) -> Array:
        """The accumulated gradient."""
        self._is_zero = False  # the caller may write into the array
        return self._allocated_grad()

    @grad.setter
    def grad(self, grad: Array) -> None:
        self._grad_is_view = self._grad_is_view and grad is self._grad  # the same after `p.grad *= 2`
        self._grad, self._is_zero = grad, False

    @property
    def has_grad(self) -> bool:
        """True if the gradient was allocated."""
        return self._grad is not None or (self.buffer is not None and self.buffer.has_grads)

    def _allocated_grad(self) -> Array:
        """Return the gradient, and allocate it as zeros at its first use."""
        if self._grad is None:
            if self.buffer is None or self.buffer.values is None:
                self._grad = array_module(self.value).zeros_like(self.value)
            else:
                self._grad = self.buffer.grads[self._part].reshape(self.value.shape)
                self._grad_is_view = True
        return self._grad

    def view(self, buffer: FlatBuffer, part: slice) -> None:
        """Make the value and the gradient views of a part of a buffer, which contains the value."""
        if buffer.values is not None:
            self.value = buffer.values[part].reshape(self.value.shape)
        self.buffer, self._part = buffer, part
        self._grad, self._is_zero, self._grad_is_view = None, False, False  # grad finds its view

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy or a pickle, without a gradient that is a view of the buffer."""
        state = vars(self).copy()
        if state.get("_grad_is_view"):
            state["_grad"] = None  # the copy's grad finds its view
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes of a copy. Its value becomes a view of the copy of the buffer."""
        vars(self).update(state)
        buffer = state.get("buffer")
        if buffer is not None and buffer.values is not None:
            self.value = buffer.values[self._part].reshape(self.value.shape)

    def zero_grad(self) -> None:
        """Set the gradient to 0."""
        if self.has_grad:
            self._allocated_grad()[...] = 0
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
        grad = self._allocated_grad()
        if hasattr(gradient, "add_to"):
            gradient.add_to(grad, is_zero=self._is_zero)
        else:
            grad[at] += gradient
        self._is_zero = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value and of the gradient."""
        return self.value.shape

    def __repr__(self) -> str:
        return f"Parameter{tuple(self.value.shape)} {self.value.dtype}"


class Module:
    """The base class of all layers and models.

    Its children are the Parameters and Modules in its attributes, and in lists, dicts and other objects that
    it holds. A subclass defines forward(x, ...) -> (y, cache) and backward(dy, cache) -> dx. backward also
    adds the gradients of the parameters to their `grad`. For inference, layer(x, ...) returns y alone.
    """

    forward: Any
    backward: Any

    _buffer: FlatBuffer | None = None  # of a flattened module
    has_ponder_cost = False  # True if the loss contains ponder_cost(cache), and backward takes dponder=
    supports_packing = False  # True if forward takes packed=True, which skips the computation at padding

    @cached_property
    def values(self) -> Any:
        """All parameters of a flattened module, one after the other, of shape (P,) (see flatten).

        If they lie apart (see unflatten), the first use joins them.
        """
        buffer = self._joined_buffer()
        return None if buffer is None else buffer.values

    @property
    def reference(self) -> Any:
        """An array on the device of a flattened module. Unlike `values`, it leaves parameters apart."""
        return None if self._buffer is None else self._buffer.reference

    @property
    def grads(self) -> Any:
        """The gradients of all parameters of a flattened module, of shape (P,), in the order of `values`."""
        buffer = self._joined_buffer()
        return None if buffer is None else buffer.grads

    @grads.setter
    def grads(self, grads: Array) -> None:
        self._require_flat()
        if grads is not self.grads:  # it is after `model.grads *= 2`
            self.grads[...] = grads

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
        yield from held_objects(self, _is_module_or_parameter)

    def modules(self) -> list[Module]:
        """Return this module and all modules below it, each one once."""
        below = held_objects(self, _is_module_or_parameter, enter=_is_module)
        return list({id(item): item for item in [self, *(m for _, m in below if _is_module(m))]}.values())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs (dotted name, Parameter).

        A tied parameter, which several modules share, occurs once, under its first name.
        """
        return named_parameters(self)

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

        Each parameter becomes a view of the two buffers, and its array from before is freed unless something
        else holds it. So the optimizer updates one array instead of one array for each parameter, and the
        norm of all gradients is the norm of one array. If there are no gradients yet, `grads` is allocated
        when it is first used.

        Returns:
            The module itself.

        Raises:
            UserError: If this module is a part of a larger model that was flattened before.
        """
        parameters = self.parameters()
        if any(p.buffer is not None and p.buffer is not self._buffer for p in parameters):
            raise UserError(
                f"this {type(self).__name__} shares parameters with a larger model, in whose buffers they "
                "lie: flatten, move, optimize or replicate the whole model"
            )
        if not parameters:
            return self
        values, grads = _zeros_for([p.value for p in parameters]), None
        if any(p.has_grad for p in parameters):
            grads = _joined([p.grad for p in parameters])
        _move_values(parameters, values)
        self._view(parameters, values, grads)
        return self

    def unflatten(self, values: Mapping[str, Array]) -> None:
        """Let the parameters of a module on the host lie apart, until `values` or `grads` joins them.

        Args:
            values: The new values of some parameters, by their dotted names, such as maps of a file. The
                other parameters get arrays of their own, whose numbers are arbitrary.
        """
        parameters = dict(self.named_parameters())
        for name, parameter in parameters.items():
            given = values.get(name)
            parameter.value = np.empty_like(parameter.value) if given is None else given
        self._view(list(parameters.values()), None)

    def _view(self, parameters: list[Parameter], values: Array | None, grads: Array | None = None) -> None:
        """Make the parameters views of these two buffers. None allocates the gradients at their first use."""
        self.values, self._buffer = values, FlatBuffer(values, grads)
        if values is None:
            del self.values  # found at its first use
        start = 0
        for parameter in parameters:
            end = start + parameter.value.size
            parameter.view(self._buffer, slice(start, end))
            start = end

    def replicate(self) -> Self:
        """Return a copy that shares the parameter values and has its own gradients.

        In parallel training, each worker computes its part of a batch on such a copy.
        """
        self._require_flat()
        # the second argument of deepcopy lists the objects that are not copied: the copy shares the values of
        # the parameters and the position tables. _view then replaces the buffer and the gradients
        shared = [a for module in self.modules() for a in vars(module).values() if is_array(a)]
        shared += [array for p in self.parameters() for array in (p.value, p._grad)]
        replica = copy.deepcopy(self, {id(each): each for each in [*shared, self._buffer]})
        replica._view(replica.parameters(), self.values)
        return replica

    def to(self, backend: str) -> Self:
        """Move the module to "numpy" or "cupy", with its gradients and position tables, and return it.

        A module on the host that is to stay there is returned as it is, without a copy of its parameters.
        """
        arrays = [*(p.value for p in self.parameters()), *(table for *_, table in self._tables())]
        if backend == "numpy" and not any(map(is_cupy, arrays)):
            return self
        return self._convert(lambda array: to_backend(array, backend))

    def astype(self, dtype: Any) -> Self:
        """Convert the module to a dtype, such as float64 for gradient checks, and return it."""
        return self._convert(lambda array: array.astype(dtype))

    def _convert(self, change: Callable[[Any], Any]) -> Self:
        self.flatten()  # raises an error for a part of a larger model before anything is changed
        for parameter in self.parameters():
            if parameter.has_grad:
                parameter.grad = change(parameter.grad)
            parameter.value = change(parameter.value)
        for module, name, table in list(self._tables()):
            setattr(module, name, change(table))
        return self.flatten()

    def _tables(self) -> Iterator[tuple[Module, str, Array]]:
        """Yield the arrays of floats that are no parameters, such as position tables, and where they are."""
        for module in self.modules():
            for name, attribute in vars(module).items():
                if is_array(attribute) and name != "values" and attribute.dtype.kind == "f":
                    yield module, name, attribute

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

    def _joined_buffer(self) -> FlatBuffer | None:
        """Return the buffer of a flattened module, in which its parameters lie from now on, or None."""
        if self._buffer is not None and self._buffer.values is None:
            self.flatten()
        return self._buffer

    def _require_flat(self) -> None:
        if self.values is None:
            self.flatten()


def _joined(arrays: list[Array]) -> Array:
    """Return the numbers of arrays one after the other, as a new array of shape (P,).

    Unlike concatenate of flat arrays, this makes no second copy of arrays that are not contiguous.
    """
    joined, start = _zeros_for(arrays), 0
    for array in arrays:
        joined[start : start + array.size].reshape(array.shape)[...] = array
        start += array.size
    return joined


def _move_values(parameters: list[Parameter], joined: Array) -> None:
    """Copy the values of parameters into zeros of shape (P,), and make each a view of its part.

    The zeros of a model whose values are not drawn (see init.UNDRAWN) are not written, so the system provides
    the memory when the values are read.
    """
    start = 0
    for parameter in parameters:
        end = start + parameter.value.size
        part = joined[start:end].reshape(parameter.value.shape)
        if not _is_one_zero(parameter.value):
            part[...] = parameter.value
        parameter.value, start = part, end


def _zeros_for(arrays: list[Array]) -> Array:
    """Return zeros of shape (P,) for the numbers of arrays one after the other."""
    dtype = np.result_type(*{array.dtype for array in arrays})
    return array_module(arrays[0]).zeros(sum(array.size for array in arrays), dtype)


def _is_one_zero(array: Array) -> bool:
    """Return whether all numbers of an array are the same 0 in memory."""
    return array.size > 1 and not any(array.strides) and not array[(0,) * array.ndim]


def named_parameters(holder: Any) -> Iterator[tuple[str, Parameter]]:
    """Yield pairs (dotted name, Parameter) of a Module or of any other object, each parameter once.

    A parameter is a Parameter, or any object with the attributes value and grad.
    """
    seen = set()
    for name, item in held_objects(holder, _is_module_or_parameter, enter=_is_module):
        if _is_parameter(item) and id(item) not in seen:
            seen.add(id(item))
            yield name, item


def _is_module(item: Any) -> bool:
    return isinstance(item, Module)


def _is_parameter(item: Any) -> bool:
    return isinstance(item, Parameter) or (hasattr(item, "value") and hasattr(item, "grad"))


def _is_module_or_parameter(item: Any) -> bool:
    return isinstance(item, (Module, Parameter)) or _is_parameter(item)
