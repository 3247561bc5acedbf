"""Parameter and Module: a tree of layers whose parameters can lie side by side in one buffer.

A layer holds parameters and settings, never activations: what a backward pass needs travels in the
cache that forward returns. So one layer may run many times before any backward pass.
"""

import copy

import numpy as np

from npformer.backend import array_module, is_array, like, to_backend, to_numpy
from npformer.errors import UserError


class Parameter:
    """An array that is learned, and the gradient that accumulates beside it."""

    def __init__(self, value):
        self.value = value
        self.grad = array_module(value).zeros_like(value)
        self.buffer = None  # the model's `values`, once this is a view of it

    @property
    def grad(self):
        """The gradient, to which backward passes add."""
        self._is_zero = False  # whoever has it may write into it
        return self._grad

    @grad.setter
    def grad(self, grad):
        self._grad, self._is_zero = grad, False

    def zero_grad(self):
        """Set the gradient to 0."""
        self._grad[...] = 0
        self._is_zero = True

    def room(self, *, transposed=False):
        """The gradient's own array, for a product to be written into, while it is 0; afterwards None."""
        room = self._grad.T if transposed else self._grad
        is_zero, self._is_zero = self._is_zero, False
        return room if is_zero else None

    @property
    def shape(self):
        """The shape of value and grad."""
        return self.value.shape

    def __repr__(self):
        return f"Parameter{tuple(self.value.shape)} {self.value.dtype}"


class Module:
    """A layer: attributes that are Parameters, Modules or lists of Modules make the tree.

    A subclass defines forward(x, ...) -> (y, cache) and backward(dy, cache) -> dx, and backward adds
    its parameters' gradients to their .grad.
    """

    values = None  # (P,) all parameters of a flattened tree, one after the other; see flatten
    grads = None  # (P,) their gradients, in the same order
    packs = False  # whether forward takes packed=True, and computes nothing at padding

    def children(self):
        """Pairs (name, Parameter or Module) in the order in which they were defined."""
        for name, thing in vars(self).items():
            if isinstance(thing, (Parameter, Module)):
                yield name, thing
            elif isinstance(thing, (list, tuple)):
                for index, item in enumerate(thing):
                    if isinstance(item, Module):
                        yield f"{name}.{index}", item

    def modules(self):
        """This module and all below it, each once."""
        found = {id(self): self}
        for _, child in self.children():
            if isinstance(child, Module):
                found.update({id(module): module for module in child.modules()})
        return list(found.values())

    def named_parameters(self):
        """Pairs (dotted name, Parameter); a tied parameter comes once, under its first name."""
        seen = set()
        for name, parameter in self._named_parameters(""):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter

    def _named_parameters(self, prefix):
        for name, child in self.children():
            if isinstance(child, Parameter):
                yield prefix + name, child
            else:
                yield from child._named_parameters(f"{prefix}{name}.")

    def parameters(self):
        """All parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def count_parameters(self):
        """How many numbers are learned."""
        return sum(parameter.value.size for parameter in self.parameters())

    def zero_grad(self):
        """Set every gradient to 0, before the backward passes of a step add to them."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def flatten(self):
        """Lay all parameters in one buffer, `values`, and their gradients in another, `grads`.

        Each parameter becomes a view: so an optimizer is one loop, clipping one norm, a checkpoint one
        block.
        Errors: UserError for a part of a model that is flat already: it would tear the part out.
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

    def _view(self, parameters, values, grads):
        """Make the parameters views of these two buffers."""
        self.values, self.grads = values, grads
        start = 0
        for parameter in parameters:
            shape, end = parameter.value.shape, start + parameter.value.size
            parameter.value = values[start:end].reshape(shape)
            parameter.grad = grads[start:end].reshape(shape)
            parameter.buffer = values
            start = end

    def replicate(self):
        """Another module on the same values with gradients of its own: one worker's share of a batch."""
        self._require_flat()
        # what stands in the memo is shared, not copied: the values, and position tables
        shared = [a for module in self.modules() for a in vars(module).values() if is_array(a)]
        shared += [array for p in self.parameters() for array in (p.value, p.grad)]
        twin = copy.deepcopy(self, {id(array): array for array in shared})
        twin._view(twin.parameters(), self.values, array_module(self.grads).zeros_like(self.grads))
        return twin

    def to(self, backend):
        """Move the module, gradients and position tables included, to "numpy" or "cupy"."""
        return self._convert(lambda array: to_backend(array, backend))

    def astype(self, dtype):
        """Convert every number of the module to float32, or to float64 for checking."""
        return self._convert(lambda array: array.astype(dtype))

    def _convert(self, change):
        self.flatten()  # refuses a part of a larger model before anything is changed
        for parameter in self.parameters():
            parameter.value, parameter.grad = change(parameter.value), change(parameter.grad)
        for module in self.modules():
            for name, thing in vars(module).items():
                if is_array(thing) and name not in ("values", "grads") and thing.dtype.kind == "f":
                    setattr(module, name, change(thing))
        return self.flatten()

    def state(self):
        """A dict from dotted name to a copy of the values on the host."""
        return {name: np.array(to_numpy(p.value)) for name, p in self.named_parameters()}

    def load_state(self, state):
        """Take the values of a dict that state() made.

        Errors: UserError, before anything is changed, where a name is missing or unknown, or a shape
        differs.
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

    def _require_flat(self):
        if self.values is None:
            self.flatten()
