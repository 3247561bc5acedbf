"""Flattening: the parameters of a whole model in one array, and their gradients in another.

One call then updates all parameters, and the norm of all gradients is the norm of one array. The parameters
become views of the two arrays. They are looked up when the model is flattened, and not at every step.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from npformer.backend import Array, array_module, is_array, is_cupy, to_backend
from npformer.errors import UserError

if TYPE_CHECKING:
    from npformer.nn.module import Parameter


class Flat:
    """The parameters of a flattened model, and the two arrays of which values and gradients are views.

    The array of gradients is allocated when the first gradient is used, since a model that only computes
    outputs has no gradients.

    Args:
        parameters: All parameters of the model, each one once, in the order of their names.
        values: The array of which their values are views, of shape (P,). None if each value has an array of
            its own, and each gradient too, until `join_values` joins them.
    """

    changes = 0  # the number of changes in this process after which a module may have a new parameter

    def __init__(self, parameters: list[Parameter], values: Array | None = None) -> None:
        self.parameters, self.values = parameters, values
        self.grads: Array | None = None  # (P,), or None before the first gradient
        self.views: list[Array | None] = [None] * len(parameters)  # the part of grads of each parameter
        self.late: list[Parameter] = []  # parameters that the model got later
        self.seen = -1  # the value of Flat.changes when they were looked up
        for parameter in parameters:
            parameter.flat = self

    def join_values(self) -> None:
        """Copy the values into one array, and make each value a view of its part.

        If values are not drawn (see init.UNDRAWN), nothing is copied, since all values will be read from a
        file: so the system provides the memory when they are read, and none if they are mapped.
        """
        arrays = [parameter.value for parameter in self.parameters]
        is_drawn = not any(map(_is_one_zero, arrays))
        dtype = np.result_type(*{array.dtype for array in arrays})
        self.values = array_module(arrays[0]).zeros(sum(array.size for array in arrays), dtype)
        del arrays  # so that each value is freed as soon as it is copied
        for parameter, part in self._parts(self.values):
            if is_drawn:
                part[...] = parameter.value
            parameter.value = part

    def join_grads(self) -> None:
        """Allocate one array of zeros, copy the gradients that there are into it, and make each a view."""
        self.grads = array_module(self.values).zeros_like(self.values)
        self.views = []
        for parameter, part in self._parts(self.grads):
            if parameter.stored is not None:
                part[...] = parameter.stored
            parameter.stored = part
            self.views.append(part)

    def zero_grad(self) -> None:
        """Set all gradients to 0, in one operation unless they lie apart."""
        if self.grads is not None:
            self.grads[...] = 0
        for parameter, view in zip(self.parameters, self.views, strict=True):
            if parameter.stored is not view:  # it lies apart, or another array was assigned
                parameter.zero_grad()
            parameter.is_zero = True

    def _parts(self, joined: Array) -> Iterator[tuple[Parameter, Array]]:
        """Yield each parameter with its part of an array (P,), in the shape of the parameter."""
        start = 0
        for parameter in self.parameters:
            end = start + parameter.value.size
            yield parameter, joined[start:end].reshape(parameter.shape)
            start = end

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what copy and pickle need: they copy the parameters and join the copies anew."""
        return _joined, (self.parameters, self.values is not None, self.grads is not None)


def allocate_grad(parameter: Parameter) -> None:
    """Allocate the gradient of a parameter: with all others of a flattened model, or alone."""
    flat = parameter.flat
    if flat is not None and flat.values is not None:
        flat.join_grads()
    else:
        parameter.stored = array_module(parameter.value).zeros_like(parameter.value)


class FlatPart:
    """The base class of Parameter: its value and its gradient may lie in the arrays of a flattened model."""

    value: Any
    stored: Any
    _flat: Any = (
        None  # a weak reference, since a cycle would keep the arrays until the garbage collector runs
    )

    @property
    def flat(self) -> Flat | None:
        """The arrays of the flattened model that has this parameter, or None."""
        return None if self._flat is None else self._flat()

    @flat.setter
    def flat(self, flat: Flat) -> None:
        self._flat = weakref.ref(flat)

    @property
    def has_grad(self) -> bool:
        """True if the gradient was allocated."""
        return self.stored is not None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy or a pickle. The copy of a Flat sets `flat` again."""
        return vars(self) | {"_flat": None}


class Flattening:
    """The methods of a Module that concern all its parameters: flat arrays, copies, the device, the dtype."""

    _flat: Flat | None = None  # of a flattened module
    parameters: Callable[[], list[Parameter]]
    named_parameters: Callable[[], Iterator[tuple[str, Parameter]]]
    _below: Callable[[], Iterator[tuple[str, Any]]]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, which may be a new parameter or layer."""
        super().__setattr__(name, value)
        Flat.changes += 1

    @property
    def values(self) -> Any:
        """All parameters of a flattened module, one after the other, of shape (P,) (see flatten).

        If they lie apart (see unflatten), the first use joins them.
        """
        flat = self._flat
        if flat is not None and flat.values is None:
            flat.join_values()
        return None if flat is None else flat.values

    @values.setter
    def values(self, values: Array) -> None:
        self._require_flat()
        if values is not self.values:  # it is after `model.values *= 2`
            self.values[...] = values

    @property
    def grads(self) -> Any:
        """The gradients of all parameters of a flattened module, of shape (P,), in the order of `values`."""
        flat = self._flat
        if flat is not None and flat.grads is None:
            if flat.values is None:
                flat.join_values()
            flat.join_grads()
        return None if flat is None else flat.grads

    @grads.setter
    def grads(self, grads: Array) -> None:
        self._require_flat()
        if grads is not self.grads:  # it is after `model.grads *= 2`
            self.grads[...] = grads

    @property
    def reference(self) -> Any:
        """An array on the device of the module. Unlike `values`, it leaves parameters apart."""
        parameters = self.parameters() if self._flat is None else self._flat.parameters
        return parameters[0].value if parameters else None

    def _late_parameters(self) -> list[Parameter]:
        """Return the parameters that are not in the flat arrays, which a flattened module got later.

        They are looked up only if a parameter was made, or an attribute of a module was set, since the last
        call. A module that is not flattened returns all its parameters.
        """
        flat = self._flat
        if flat is None:
            return self.parameters()
        if flat.seen != Flat.changes:
            flat.seen = Flat.changes
            flat.late = [parameter for parameter in self.parameters() if parameter.flat is not flat]
        return flat.late

    def flatten(self) -> Self:
        """Copy all parameters into one array, `values`, and all gradients into another, `grads`.

        Each parameter becomes a view of the two arrays, and its array from before is freed unless something
        else holds it. So the optimizer updates one array instead of one array for each parameter, and the
        norm of all gradients is the norm of one array. If there are no gradients yet, `grads` is allocated
        when it is first used. A parameter that is added later is in the arrays after the next call.

        Returns:
            The module itself.

        Raises:
            UserError: If this module is a part of a larger model that was flattened before.
        """
        parameters = self.parameters()
        if any(p.flat is not None and p.flat is not self._flat for p in parameters):
            raise UserError(
                f"this {type(self).__name__} shares parameters with a larger model, in whose buffers they "
                "lie: flatten, move, optimize or replicate the whole model"
            )
        if parameters:
            has_grads = any(parameter.has_grad for parameter in parameters)
            self._flat = _joined(parameters, True, has_grads)
        return self

    def _require_flat(self) -> Flat:
        """Return the flat arrays of the module, and flatten it if it is not flattened yet."""
        flat = self._flat or self.flatten()._flat
        assert flat is not None
        return flat

    def unflatten(self, values: Mapping[str, Array]) -> None:
        """Let the parameters of a module on the host lie apart, until `values` or `grads` joins them.

        Args:
            values: The new values of some parameters, of their shapes, by their dotted names, such as maps of
                a file. The other parameters get arrays of their own, whose numbers are arbitrary.
        """
        for name, parameter in self.named_parameters():
            given = values.get(name)
            parameter.value = np.empty_like(parameter.value) if given is None else given
            parameter.stored, parameter.is_zero = None, True
        self._flat = Flat(self.parameters())

    def replicate(self) -> Self:
        """Return a copy that shares the parameter values and has its own gradients.

        In parallel training, each worker computes its part of a batch on such a copy.
        """
        self._require_flat()
        replica = self.shared_copy()
        replica._flat = Flat(replica.parameters(), self.values)
        return replica

    def shared_copy(self, replaced: Mapping[int, Any] | None = None) -> Self:
        """Return a copy that shares all arrays, such as values and position tables, and has no gradients yet.

        Args:
            replaced: By the id of a layer or a parameter, what the copy has in its place.
        """
        shared = [a for m in self.modules() for a in vars(m).values() if is_array(a) or isinstance(a, Flat)]
        shared += [array for p in self.parameters() for array in (p.value, p.stored)]
        # the second argument of deepcopy is a dict from the id of an object to what the copy has in its place
        copied = copy.deepcopy(self, {id(each): each for each in shared} | dict(replaced or {}))
        for module in copied.modules():
            vars(module).pop("_flat", None)
        for parameter in copied.parameters():
            parameter.stored, parameter.is_zero = None, True
        return copied

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
            if parameter.stored is not None:
                parameter.stored = change(parameter.stored)
            parameter.value = change(parameter.value)
        for module, name, table in list(self._tables()):
            setattr(module, name, change(table))
        return self.flatten()

    def named_modules(self) -> Iterator[tuple[str, Any]]:
        """Yield pairs (dotted name, Module) of this module, whose name is empty, and of all below it."""
        yield "", self
        yield from ((name, item) for name, item in self._below() if isinstance(item, Flattening))

    def modules(self) -> list[Any]:
        """Return this module and all modules below it, each one once."""
        return [module for _, module in self.named_modules()]

    def count_parameters(self) -> int:
        """Return the number of entries of all parameters together."""
        return sum(parameter.value.size for parameter in self.parameters())

    def _tables(self) -> Iterator[tuple[Any, str, Array]]:
        """Yield the arrays of floats that are no parameters, such as position tables, and where they are."""
        for module in self.modules():
            for name, attribute in vars(module).items():
                if is_array(attribute) and attribute.dtype.kind == "f":
                    yield module, name, attribute


def _joined(parameters: list[Parameter], has_values: bool, has_grads: bool) -> Flat:
    """Return the flat arrays of parameters: of their values, of their gradients, or of both."""
    flat = Flat(parameters)
    if has_values:
        flat.join_values()
    if has_grads:
        flat.join_grads()
    return flat


def _is_one_zero(array: Array) -> bool:
    """Return whether all numbers of an array are the same 0 in memory."""
    return array.size > 1 and not any(array.strides) and not array[(0,) * array.ndim]
