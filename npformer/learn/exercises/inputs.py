"""The inputs of the learner's functions: they are restored after a call that changed them.

Many trials pass arrays and lists that belong to their module. Without this, a function that writes into them
would change the later trials too.
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
    """The arrays and lists that are passed to a function.

    Args:
        names: The names of the arguments.
        args: The arguments.

    Attributes:
        arrays: The arrays by name. Those in a cache have names such as cache.weights.
        before: Copies of them, from before the call.
        lists: The lists by name.
    """

    def __init__(self, names: Sequence[str], args: Sequence[Any]) -> None:
        self.arrays: dict[str, Array] = dict(_named(names, args))
        self.before = {name: np.array(array) for name, array in self.arrays.items()}
        pairs = zip(names, args, strict=False)
        self.lists = {name: thing for name, thing in pairs if isinstance(thing, list)}
        self._lists_before = copy.deepcopy(self.lists)

    def restore(self) -> list[str]:
        """Restore what the function changed, and return the names of the arrays and lists that it changed."""
        changed = [name for name, old in self.before.items() if not _equal(old, self.arrays[name])]
        for name in changed:
            self.arrays[name][...] = self.before[name]
        for name, old in self._lists_before.items():
            if not _is_same(self.lists[name], old):
                changed.append(name)
                self.lists[name][:] = old
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


def _is_same(one: list[Any], other: list[Any]) -> bool:
    try:
        return one == other
    except ValueError:  # the learner put an array into the list
        return False


def _named(names: Sequence[str], args: Sequence[Any]) -> Iterator[tuple[str, Array]]:
    """Yield (name, array) for every array among the arguments; arrays in a cache as cache.name."""
    for index, thing in enumerate(args):
        name = names[index] if index < len(names) else f"argument {index + 1}"
        if is_array(thing):
            yield name, thing
        else:
            yield from ((f"{name}.{inner}", array) for inner, array in named_arrays(thing))
