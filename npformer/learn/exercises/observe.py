"""Run the trials of an exercise on the learner's functions, and return what they compute.

This part runs in the child process. It compares nothing (see grade.py).
"""

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.learn.exercises.backward_calls import CALLS, SEED, Recorder
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.tasks.verdict import Fault, Verdict, describe_error, error_lines
from npformer.nn.show import named_arrays


def observe(exercise: Exercise, functions: dict[str, Any], file: str = "") -> Iterator[dict[str, Any]]:
    """Run the trials up to the first exception, and yield an observation of each.

    An observation has the results of a comparison under "values", or the calls of a backward pass under
    "calls".

    Args:
        exercise: The exercise.
        functions: The learner's functions by name.
        file: The file that they come from. Messages about exceptions name its lines.
    """
    own = SimpleNamespace()
    observation: dict[str, Any] = {}
    try:
        own = watched(exercise, functions)
        for trial in exercise.trials:
            observation = {}
            _run(trial, own, observation)
            yield observation
    except Fault as fault:
        yield observation | fault.verdict.as_observation()
    except Exception as error:  # the learner's code may raise anything
        yield observation | _verdict_on_error(error, own, file).as_observation()


def _run(trial: Gradients | Values, own: Functions, observation: dict[str, Any]) -> None:
    """Run a trial and put its results into the observation. Those before an exception are kept."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if isinstance(trial, Values):
            observation["values"] = trial.run(own, np.random.default_rng(SEED))
            return
        recorder = Recorder()
        observation["calls"] = recorder.calls
        for calls in CALLS:
            calls(trial, own, recorder.wrap)


def _verdict_on_error(error: Exception, own: Functions, file: str) -> Verdict:
    """Return the verdict on an exception that the learner's code, or its caller, raised."""
    nothing = [function.name for function in vars(own).values() if function.returned_nothing]
    if nothing and "NoneType" in str(error) and not error_lines(error, file):  # its caller needed a result
        return Verdict(
            False, f"{nothing[0]} returns nothing (None): complete its body, and end it with a return"
        )
    return verdict_on_error(error, file)


def verdict_on_error(error: Exception, file: str) -> Verdict:
    """Return the verdict on an exception that the learner's code raised, or that its results caused."""
    text = str(error)
    clues = []
    if isinstance(error, ValueError) and any(word in text for word in ("matmul", "broadcast", "reshape")):
        clues = ["two shapes do not match: is an array transposed, or are two arrays exchanged?"]
    return Verdict(False, describe_error(error, file), clues)


# ---------------------------------------------------------------------------------------------------------
# The learner's functions


class Watched:
    """A function that raises `Fault` if it writes into one of its array arguments.

    Args:
        name: The function's name, for messages.
        function: The function.
        writes: True if it may write into its arguments.
        arguments: The names of its arguments. The default are those of its signature.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        writes: bool = False,
        arguments: Sequence[str] | None = None,
    ) -> None:
        self.name, self.function, self.writes = name, function, writes
        self.returned_nothing = False
        self.arrays: dict[str, Array] = {}  # the array arguments of the last call, by name
        self.__signature__ = inspect.signature(function)  # gradcheck reads the names of the arguments
        self._arguments = list(self.__signature__.parameters) if arguments is None else arguments

    def __call__(self, *args: Any, **settings: Any) -> Any:
        self.arrays = dict(_array_arguments(self._arguments, args))
        before = {name: np.array(array) for name, array in self.arrays.items()}
        returned = self.function(*args, **settings)
        self.returned_nothing = returned is None
        for name, old in before.items():
            unchanged = np.array_equal(old, self.arrays[name], equal_nan=old.dtype.kind in "fc")
            if not self.writes and not unchanged:
                what = "the cache" if name.startswith("cache") else "its input"
                raise Fault(
                    f"{self.name} writes into {name}, {what}, which must not change",
                    ("input modified: y *= 2 and y[i] = 0 change the caller's array, so make a new array",),
                )
        self.arrays = before  # the diagnosis needs the arrays as they were passed
        return returned


def _array_arguments(names: Sequence[str], args: Sequence[Any]) -> Iterator[tuple[str, Array]]:
    """Yield (name, array) for every array among the arguments; arrays in a cache as cache.name."""
    for index, thing in enumerate(args):
        name = names[index] if index < len(names) else f"argument {index + 1}"
        if is_array(thing):
            yield name, thing
        else:
            yield from ((f"{name}.{inner}", array) for inner, array in named_arrays(thing))


def watched(exercise: Exercise, functions: dict[str, Any]) -> Functions:
    """Return the learner's functions by name, each wrapped in `Watched`.

    Raises:
        Fault: If a function is missing or takes too few arguments.
    """
    own = {}
    for name in exercise.solution:
        function = functions.get(name)
        if not callable(function):
            raise Fault(f"there is no function {name} in your file: keep the names of the original file")
        taken = inspect.signature(function).parameters.values()
        n_taken = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in taken)
        written = exercise.arguments(name)
        if n_taken < len(written) and not any(p.kind == p.VAR_POSITIONAL for p in taken):
            raise Fault(f"{name} takes {n_taken} arguments and must take ({', '.join(written)})")
        own[name] = Watched(name, function, writes=exercise.writes)
    return SimpleNamespace(**own)
