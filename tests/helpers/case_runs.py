"""Layers and models of the gradient checks, run forward and backward in any precision, on any device."""

import copy
from types import SimpleNamespace

import numpy as np

from npformer.backend import is_array, to_backend
from npformer.checking.cases import component_cases
from npformer.checking.check_target import fresh_settings, settings_of
from npformer.nn import Module
from npformer.nn.show import named_arrays

# what the gradient checks add to a layer in NumPy, so that it does not run on a device
ONLY_NUMPY = ("_Batched", "_WithPonder", "_Surrogate", "_Mixed", "_Expected")


def modules_of(thing):
    """Return the layer or model of a case, or those that an object of the gradient checks holds."""
    return (
        [thing] if isinstance(thing, Module) else [m for m in vars(thing).values() if isinstance(m, Module)]
    )


def layer_cases():
    """Return the cases of layers and models. The others are pairs of functions."""
    return [case for case in component_cases() if not isinstance(built(case)[0], tuple)]


def built(case):
    return case.build(np.random.default_rng(1))


def run_case(case, dtype=np.float64, backend="numpy"):
    """Return the output, the cache and all gradients of a case, as arrays of the device."""
    thing, *inputs = copy.deepcopy(built(case))  # two cases share a table of rotary positions
    modules = modules_of(thing)
    for module in modules:
        if module.parameters():
            module.astype(dtype).to(backend)

    def place(value):
        if not is_array(value):
            return value
        return to_backend(value.astype(dtype) if value.dtype.kind == "f" else value, backend)

    settings = fresh_settings(settings_of(thing.forward, case.settings))
    settings = {name: place(value) for name, value in settings.items()}
    y, cache = thing.forward(*map(place, inputs), **settings)
    dy = 0.7 * np.random.default_rng(2).standard_normal(y.shape) if y.shape else 0.7
    returned = thing.backward(place(dy), cache)
    returned = returned if isinstance(returned, tuple) else (returned,)
    grads = [p.grad for module in modules for p in module.parameters()]
    return SimpleNamespace(
        y=y,
        cached=[array for _, array in named_arrays((cache,))],
        grads=[grad for grad in (*returned, *grads) if grad is not None],
    )
