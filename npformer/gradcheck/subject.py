"""What is checked, seen as one function of named tensors: a layer, a pair, or a whole model.

The parameters are set for each evaluation, to real or complex values, and put back afterwards.
"""

import inspect
from contextlib import contextmanager

import numpy as np

from npformer.backend import is_array
from npformer.errors import UserError


class Subject:
    """A layer, or a pair (f, f_backward), with its inputs and settings.

    tensors is a dict from name to float64 array: the real inputs that forward was given, under the names
    of its arguments, and the parameters under their dotted names.
    """

    def __init__(self, thing, inputs, settings, *, randomize, rng):
        self.forward, self.backward, self.parameters = _take_apart(thing)
        self.settings = settings
        names = _argument_names(self.forward, len(inputs))
        self.inputs = dict(zip(names, inputs, strict=True))
        self.real_inputs = [name for name, x in self.inputs.items() if is_array(x) and x.dtype.kind == "f"]
        self.tensors = {name: np.array(self.inputs[name], np.float64) for name in self.real_inputs}
        for name, parameter in self.parameters.items():
            self.tensors[name] = _starting_point(np.array(parameter.value, np.float64), randomize, rng)
        if not self.tensors:
            raise UserError("nothing to check: give at least one array of floats, or a layer with parameters")

    def run(self, changes=None):
        """Evaluate forward, on copies, with some tensors replaced. Returns (y, cache)."""
        values = self.tensors | (changes or {})
        with self._parameters_set(values):
            inputs = [np.array(values[n]) if n in values else x for n, x in self.inputs.items()]
            return self.forward(*inputs, **self._settings())

    def pull(self, dy, cache, changes=None, *, times=1):
        """Run backward `times` times on zeroed gradients. Returns a dict from tensor to gradient."""
        values = self.tensors | (changes or {})
        with self._parameters_set(values):
            for _ in range(times):
                returned = self.backward(dy, cache)
            grads = {name: np.array(p.grad) for name, p in self.parameters.items()}
        return self._name_returned(returned) | grads

    def _name_returned(self, returned):
        """What backward returned, one gradient for each real input, in the order of the arguments."""
        returned = returned if isinstance(returned, tuple) else (returned,)
        returned = [dx for dx in returned if dx is not None]
        if len(returned) != len(self.real_inputs):
            raise UserError(
                f"backward returned {len(returned)} gradients and forward took {len(self.real_inputs)} "
                f"real arrays ({', '.join(self.real_inputs) or 'none'}): return one for each, in their order"
            )
        return dict(zip(self.real_inputs, returned, strict=True))

    def _settings(self):
        """The settings of one evaluation; rng given as a number seeds a fresh generator each time."""
        if isinstance(self.settings.get("rng"), int):
            return self.settings | {"rng": np.random.default_rng(self.settings["rng"])}
        return self.settings

    @contextmanager
    def _parameters_set(self, values):
        """Values in place of the parameters, and zeros of their dtype in place of the gradients."""
        kept = {name: (p.value, p.grad) for name, p in self.parameters.items()}
        kind = np.result_type(*values.values())  # complex as soon as one tensor is
        try:
            for name, parameter in self.parameters.items():
                parameter.value = values[name]
                parameter.grad = np.zeros(values[name].shape, kind)
            yield
        finally:
            for name, parameter in self.parameters.items():
                parameter.value, parameter.grad = kept[name]


def _take_apart(thing):
    """Returns (forward, backward, parameters by name)."""
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
    else:  # a layer of one's own: whatever has a value and a gradient is a parameter
        parameters = {n: p for n, p in vars(thing).items() if hasattr(p, "value") and hasattr(p, "grad")}
    return thing.forward, thing.backward, parameters


def _argument_names(forward, n_inputs):
    """The names of forward's first arguments."""
    names = [
        name
        for name, parameter in inspect.signature(forward).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if n_inputs > len(names):
        raise UserError(f"forward takes {len(names)} arrays ({', '.join(names)}) and {n_inputs} were given")
    return names[:n_inputs]


def _starting_point(value, randomize, rng):
    """The value, or near it where it is the same throughout: gains at 1 and biases at 0 hide mistakes."""
    if randomize and value.size > 1 and (value == value.flat[0]).all():
        return value + 0.5 * rng.standard_normal(value.shape)
    return value
