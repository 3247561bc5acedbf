"""Objects around a forward pass: its random generators, and the arrays that it uses beside its tensors."""

import inspect
import pickle
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.backend import Array, Generator, is_array
from npformer.checking.foreign.layer import ForeignLayer
from npformer.checking.holders import held_objects, is_module
from npformer.nn.flat import Flat
from npformer.nn.module import Module, Parameter


def closure(thing: Any) -> Any:
    """Return the layer itself, or for functions the variables that they use."""
    if isinstance(thing, ForeignLayer):
        module = {} if thing.holder is None else {"module": thing.holder}
        return module | closure(tuple(thing.functions))
    if not isinstance(thing, tuple):
        return thing
    names: dict[str, Any] = {}
    for function in thing:
        if inspect.isfunction(function):
            variables = inspect.getclosurevars(function)
            names |= {**variables.globals, **variables.nonlocals}
    return names


class Generators:
    """All random generators that a layer or a pair may use, those of NumPy and Python included.

    `draw_states` gives them new states, `restore` puts them back into these, and `give_back` into the states
    that they had at first.
    """

    def __init__(self, thing: Any) -> None:
        shared = [np.random.mtrand._rand, random._inst]  # of np.random.normal and random.random
        if (torch := sys.modules.get("torch")) is not None:  # None where its import is blocked
            shared.append(torch.default_generator)
        self.items = [*shared, *(item for _, item in held_objects(closure(thing), _is_generator))]
        self.first = self.states = [pickle.dumps(_state(item)) for item in self.items]

    def have_moved(self) -> bool:
        """Return whether a generator was used since this object was made."""
        return self.first != [pickle.dumps(_state(item)) for item in self.items]

    def draw_states(self, rng: Generator) -> None:
        """Give each generator a new state, drawn from rng."""
        self.states = [pickle.dumps(_new_state(item, int(rng.integers(1 << 32)))) for item in self.items]

    def restore(self) -> None:
        """Put all generators back into the states that were drawn."""
        for item, state in zip(self.items, self.states, strict=True):
            _set_state(item, pickle.loads(state))

    def give_back(self) -> None:
        """Put all generators back into the states that they had at first."""
        self.states = self.first
        self.restore()


def _is_generator(item: Any) -> bool:
    return isinstance(item, (np.random.Generator, np.random.RandomState, random.Random)) or _is_of_torch(item)


def _is_of_torch(item: Any) -> bool:
    return type(item).__module__ == "torch._C" and type(item).__name__ == "Generator"


def _new_state(item: Any, seed: int) -> Any:
    if isinstance(item, np.random.Generator):
        return type(item.bit_generator)(seed).state
    if _is_of_torch(item):
        return type(item)(item.device).manual_seed(seed).get_state().numpy()
    return _state(type(item)(seed))


def _state(item: Any) -> Any:
    if isinstance(item, random.Random):
        return item.getstate()
    if _is_of_torch(item):
        return item.get_state().numpy()
    return item.bit_generator.state if isinstance(item, np.random.Generator) else item.get_state()


def _set_state(item: Any, state: Any) -> None:
    if isinstance(item, random.Random):
        item.setstate(state)
    elif isinstance(item, np.random.Generator):
        item.bit_generator.state = state
    elif _is_of_torch(item):
        item.set_state(sys.modules["torch"].from_numpy(state))
    else:
        item.set_state(state)


def other_arrays(thing: Any, settings: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    """Yield pairs (name, array) of the arrays of floats that are neither inputs nor values of parameters."""
    for holder in (closure(thing), settings):
        for name, item in held_objects(holder, _is_array_or_parameter, enter=is_module):
            if is_array(item) and item.dtype.kind == "f" and item.size:
                yield name, item


def _is_array_or_parameter(item: Any) -> bool:
    """Return whether an object is an array, a module, or holds values and gradients of parameters."""
    return is_array(item) or isinstance(item, (Parameter, Module, Flat)) or hasattr(item, "grad")
