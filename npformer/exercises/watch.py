"""The learner's function, watched: what it returns, and whether it leaves its arguments as they were."""

import inspect

import numpy as np

from npformer.backend import is_array
from npformer.exercises.fault import Fault
from npformer.show import named_arrays


class Watched:
    """Calls a function and raises Fault where it writes into an array it was given."""

    def __init__(self, name, function, *, writes=False):
        self.name, self.function, self.writes = name, function, writes
        self.returned_nothing = False
        self.arrays = {}  # the arrays of the last call, by name
        self.__signature__ = inspect.signature(function)  # gradcheck asks for the arguments' names

    def __call__(self, *args, **settings):
        names = list(self.__signature__.parameters)
        self.arrays = dict(_arrays(names, args))
        before = {name: np.array(array) for name, array in self.arrays.items()}
        returned = self.function(*args, **settings)
        self.returned_nothing = returned is None
        for name, old in before.items():
            if not self.writes and not np.array_equal(
                old, self.arrays[name], equal_nan=old.dtype.kind in "fc"
            ):
                what = "the cache" if name.startswith("cache") else "its input"
                raise Fault(
                    f"{self.name} writes into {name}, {what}, which must stay as it was",
                    ("input modified: y *= 2 and y[i] = 0 change the caller's array; make a new one",),
                )
        self.arrays = before  # as they came in
        return returned


def _arrays(names, args):
    """Pairs (name, array) of every array among the arguments, those in a cache with its name in front."""
    for index, thing in enumerate(args):
        name = names[index] if index < len(names) else f"argument {index + 1}"
        if is_array(thing):
            yield name, thing
        else:
            yield from ((f"{name}.{inner}", array) for inner, array in named_arrays(thing))
