"""Parameter and Module: a model is a tree of modules, and its leaves are parameters.

A layer holds parameters and settings, but no activations. The arrays that the backward pass needs are in the
cache that forward returns. So forward may run many times before the first backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.backend import Array, like, to_numpy
from npformer.nn.checks import check_state
from npformer.nn.flat import Flat, FlatPart, Flattening, allocate_grad
from npformer.nn.show import tree


class Parameter(FlatPart):
    """A learned array `value`, and `grad`, the sum of its gradients since zero_grad, of the same shape."""

    widths: tuple[int, ...] = ()  # of the matrices that lie side by side in the value, if there are several

    def __init__(self, value: Array) -> None:
        self.value = value
        self.stored: Any = None  # the array of grad, which is allocated when it is first used
        self.is_zero = True  # True as long as all entries of grad are known to be 0
        Flat.changes += 1  # so that a flattened model looks for its parameters again

    @property
    def grad(self) -> Array:
        """The gradient. The caller may write into the array."""
        if self.stored is None:
            allocate_grad(self)
        self.is_zero = False
        return self.stored

    @grad.setter
    def grad(self, grad: Array) -> None:
        self.stored, self.is_zero = grad, False

    def zero_grad(self) -> None:
        """Set the gradient to 0."""
        if self.stored is not None:
            self.stored[...] = 0
        self.is_zero = True

    def accumulate(self, gradient: Any, *, at: Any = ...) -> None:
        """Add a gradient to `grad`, or to the part of `grad` with the index `at`.

        For a whole parameter, a kernel may give a product that it has not evaluated (see kernels/lazy.py). It
        is written directly into `grad` if `grad` is known to be 0.
        """
        is_zero, grad = self.is_zero, self.grad  # in this order: the caller of grad may write into it
        if hasattr(gradient, "add_to"):
            gradient.add_to(grad, is_zero=is_zero)
        else:
            grad[at] += gradient

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value and of the gradient."""
        return self.value.shape

    def __repr__(self) -> str:
        return f"Parameter{tuple(self.value.shape)} {self.value.dtype}"


class Module(Flattening):
    """The base class of layers and models: forward(x, ...) -> (y, cache), and backward(dy, cache) -> dx.

    backward also adds the gradients of the parameters to their `grad`. The children of a module are the
    Parameters and Modules in its attributes, and in lists, tuples and dicts there.
    """

    forward: Any
    backward: Any
    has_auxiliary_loss = False  # True if the loss contains auxiliary_loss(cache); backward takes dauxiliary=
    supports_packing = False  # True if forward takes packed=True, which skips the computation at padding

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        """Return the output of forward without the cache, for inference."""
        return self.forward(*inputs, **settings)[0]

    def __repr__(self) -> str:
        return "\n".join(tree(self))

    def children(self) -> Iterator[tuple[str, Parameter | Module]]:
        """Yield pairs (name, Parameter or Module) in the order of their definition."""
        return _held(vars(self))

    def _below(self, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
        """Yield pairs (dotted name, Parameter or Module) at any depth, each under its first name only."""
        seen = {id(self)} if seen is None else seen
        for name, child in self.children():
            if id(child) not in seen:
                seen.add(id(child))
                yield prefix + name, child
                if isinstance(child, Module):
                    yield from child._below(f"{prefix}{name}.", seen)

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs (dotted name, Parameter). A tied parameter occurs once, under its first name."""
        return ((name, item) for name, item in self._below() if isinstance(item, Parameter))

    def parameters(self) -> list[Parameter]:
        """Return all parameters, each one once."""
        return [parameter for _, parameter in self.named_parameters()]

    def zero_grad(self) -> None:
        """Set all gradients to 0. Call it before the backward passes of a training step."""
        if self._flat is not None:
            self._flat.zero_grad()
        for parameter in self._late_parameters():
            parameter.zero_grad()

    def state_dict(self) -> dict[str, Array]:
        """Return a dict from the dotted name of each parameter to a copy of its values on the host."""
        return {name: np.array(to_numpy(p.value)) for name, p in self.named_parameters()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the values of a dict that state_dict() returned.

        Raises:
            UserError: If a name is missing or unknown, or if a shape differs. The model is then unchanged.
        """
        parameters, arrays = dict(self.named_parameters()), {n: np.asarray(a) for n, a in state.items()}
        check_state(parameters, arrays)
        for name, parameter in parameters.items():
            parameter.value[...] = like(arrays[name], parameter.value)


def _held(items: Any, prefix: str = "") -> Iterator[tuple[str, Parameter | Module]]:
    """Yield the Parameters and Modules in a list, a tuple or a dict, and in those that it holds."""
    items = items._asdict() if hasattr(items, "_asdict") else items  # of a named tuple
    for key, item in items.items() if isinstance(items, dict) else enumerate(items):
        if isinstance(item, (Parameter, Module)):
            yield f"{prefix}{key}", item
        elif isinstance(item, (list, tuple, dict)):
            yield from _held(item, f"{prefix}{key}.")
