"""The inputs of the learner's functions: they are restored after a call that changed them.

Many trials pass arrays, lists and dicts that belong to their module. Without this, a function that writes
into them would change the later trials too.
"""

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.learn.exercises.exercise import Exercise, Functions
from npformer.nn.show import named_arrays


class Inputs:
    """The arrays and lists that are passed to a function, and the dicts that are attributes of its arguments.

    Args:
        names: The names of the arguments.
        args: The arguments.

    Attributes:
        arrays: The arrays by name. Those in a cache have names such as cache.weights.
        before: Copies of them, from before the call.
        containers: The lists and dicts by name. The dicts have names such as pieces.ranks.
    """

    def __init__(self, names: Sequence[str], args: Sequence[Any]) -> None:
        self.arrays: dict[str, Array] = dict(_named(names, args))
        self.before = {name: np.array(array) for name, array in self.arrays.items()}
        self.containers: dict[str, Any] = {}
        self._contents: dict[str, Any] = {}
        for name, thing in zip(names, args, strict=False):
            if isinstance(thing, list):
                self.containers[name], self._contents[name] = thing, copy.deepcopy(thing)
            for part, value in getattr(thing, "__dict__", {}).items():
                if isinstance(value, dict):
                    place = f"{name}.{part}"
                    self.containers[place], self._contents[place] = value, dict(value)

    def restore(self) -> list[str]:
        """Restore the arrays, lists and dicts that the function changed, and return their names."""
        changed = [name for name, old in self.before.items() if not _equal(old, self.arrays[name])]
        for name in changed:
            self.arrays[name][...] = self.before[name]
        for name, old in self._contents.items():
            if not _is_same(container := self.containers[name], old):
                changed.append(name)
                container.clear()
                container.update(old) if isinstance(old, dict) else container.extend(old)
        return changed


def with_kept_inputs(exercise: Exercise, functions: dict[str, Callable[..., Any]]) -> Functions:
    """Return functions that restore their inputs after each call, unless the exercise is to change them."""
    return Functions(**functions if exercise.writes else {name: _kept(f) for name, f in functions.items()})


def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which then restores its inputs after each call."""
    names = list(inspect.signature(function).parameters)

    @wraps(function)  # gradcheck reads the names of the arguments
    def kept(*args: Any, **settings: Any) -> Any:
        inputs = Inputs(names, args)
        try:
            return function(*args, **settings)
        finally:
            inputs.restore()

    return kept


def _equal(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(one[key] is other[key] for key in one)
    try:
        return one == other
    except ValueError:  # the learner put an array into it
        return False


def _named(names: Sequence[str], args: Sequence[Any]) -> Iterator[tuple[str, Array]]:
    """Yield (name, array) for every array among the arguments; arrays in a cache as cache.name."""
    for index, thing in enumerate(args):
        name = names[index] if index < len(names) else f"argument {index + 1}"
        if is_array(thing):
            yield name, thing
        else:
            yield from ((f"{name}.{inner}", array) for inner, array in named_arrays(thing))
