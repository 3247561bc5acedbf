"""Run the trials of an exercise on the learner's functions, and return what they compute.

This part runs in the child process. It comes to no verdict (see grade.py).
"""

import inspect
import linecache
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.language import GRADER, later, phrase, say
from npformer.learn.exercises.agreement import far_from, results_of
from npformer.learn.exercises.backward_calls import FURTHER_CALLS, Recorder, gradients_by_name
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.exercises.explain import explain
from npformer.learn.exercises.inputs import Inputs
from npformer.learn.tasks.verdict import Fault, Verdict, describe_error, error_lines

SHAPES_DIFFER = later("two shapes do not match: is an array transposed, or are two arrays exchanged?")


def observe(exercise: Exercise, functions: dict[str, Any], file: str = "") -> Iterator[dict[str, Any]]:
    """Run the trials up to the first exception, and yield an observation of each.

    An observation has the results of a comparison under "values", or the calls of a backward pass under
    "calls". If a mistake is found that explains wrong results, one more observation says so under "mistake".

    Args:
        exercise: The exercise.
        functions: The learner's functions by name.
        file: The file that they come from. Messages name its lines.
    """
    observations = []
    for observation in _observe_trials(exercise, functions, file):
        observations.append(observation)
        yield observation
    says = explain(exercise, functions, observations, file)
    if says:
        yield {"mistake": says}


def _observe_trials(exercise: Exercise, functions: dict[str, Any], file: str) -> Iterator[dict[str, Any]]:
    """Run the trials up to the first exception, and yield an observation of each."""
    own = SimpleNamespace()
    observation: dict[str, Any] = {}
    try:
        own = watched(exercise, functions)
        for trial in exercise.trials:
            observation = {}
            _run(trial, own, SimpleNamespace(**exercise.solution), observation)
            yield observation
    except Fault as fault:
        yield observation | fault.verdict.as_observation()
    except Exception as error:  # the learner's code may raise anything
        yield observation | _verdict_on_error(error, own, file).as_observation()


def _run(trial: Gradients | Values, own: Functions, package: Functions, observation: dict[str, Any]) -> None:
    """Run a trial and put its results into the observation. Those before an exception are kept."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if isinstance(trial, Values):
            observation["values"] = trial.run(own, np.random.default_rng(trial.seed))
            return
        recorder = Recorder()
        observation["calls"] = recorder.calls
        found = gradients_by_name(trial, own, recorder.wrap)
        if far_from(found, results_of(trial, package)):
            return  # the comparison will fail, and the gradient check would diagnose the mistake for seconds
        for calls in FURTHER_CALLS:
            calls(trial, own, recorder.wrap)


def _verdict_on_error(error: Exception, own: Functions, file: str) -> Verdict:
    """Return the verdict on an exception that the learner's code, or its caller, raised."""
    nothing = [function.name for function in vars(own).values() if function.returned_nothing]
    if nothing and "NoneType" in str(error) and not error_lines(error, file):  # its caller needed a result
        return Verdict(
            False,
            say(
                "{name} returns nothing (None): complete its body, and end it with a return", name=nothing[0]
            ),
        )
    return verdict_on_error(error, file)


def verdict_on_error(error: Exception, file: str) -> Verdict:
    """Return the verdict on an exception that the learner's code raised, or that its results caused."""
    text = str(error)
    clues = [
        say("{name} is None in this trial, and this case is not treated", name=name)
        for name in _none_names(error, file)
    ]
    is_of_shapes = any(word in text for word in ("matmul", "broadcast", "reshape")) and "einstein" not in text
    is_of_numpy = isinstance(error, ValueError) and not isinstance(error, UserError)  # which says what to do
    if is_of_numpy and is_of_shapes:
        clues = [phrase(SHAPES_DIFFER, GRADER)]
    return Verdict(False, describe_error(error, file), clues)


def _none_names(error: Exception, file: str) -> Iterator[str]:
    """Yield the variables and attributes in the learner's line that are None, if the error is about None."""
    frames = [
        frame for frame in traceback.walk_tb(error.__traceback__) if frame[0].f_code.co_filename == file
    ]
    if not frames or "NoneType" not in str(error):
        return
    frame, number = frames[-1]
    for name in dict.fromkeys(re.findall(r"[^\W\d]\w*(?:\.\w+)*", linecache.getline(file, number))):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            first, *attributes = parts[:length]
            value = frame.f_locals.get(first, frame)  # the frame stands for a name that is no variable
            for attribute in attributes:
                value = getattr(value, attribute, frame)
            if value is None:
                yield ".".join(parts[:length])


# ---------------------------------------------------------------------------------------------------------
# The learner's functions


class Watched:
    """A function that raises `Fault` if it writes into one of its arguments.

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
        inputs = Inputs(self._arguments, args)
        self.arrays = inputs.arrays
        changed: list[str] = []
        try:
            returned = self.function(*args, **settings)
        finally:
            changed += [] if self.writes else inputs.restore()
        self.returned_nothing = returned is None
        if changed:
            what = say("the cache") if changed[0].startswith("cache") else say("its input")
            clue = say("input modified: y *= 2 and y[i] = 0 change the caller's array, so make a new array")
            if changed[0] in inputs.containers:
                clue = say(
                    "input modified: append, pop and del change the caller's list or dict, so make a new one"
                )
            raise Fault(
                say(
                    "{name} writes into {array}, {what}, which must not change",
                    name=self.name,
                    array=changed[0],
                    what=what,
                ),
                (clue,),
            )
        self.arrays = inputs.before  # the diagnosis needs the arrays as they were passed
        return returned


def watched(exercise: Exercise, functions: dict[str, Any]) -> Functions:
    """Return the learner's functions by name, each wrapped in `Watched`.

    Raises:
        Fault: If a function is missing or takes too few arguments.
    """
    own = {}
    for name in exercise.solution:
        function = functions.get(name)
        if not callable(function):
            raise Fault(
                say(
                    "there is no function {name} in your file: keep the names of the original file", name=name
                )
            )
        taken = inspect.signature(function).parameters.values()
        n_taken = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in taken)
        written = exercise.arguments(name)
        if n_taken < len(written) and not any(p.kind == p.VAR_POSITIONAL for p in taken):
            raise Fault(
                say(
                    "{name} takes {n_taken} arguments and must take ({names})",
                    name=name,
                    n_taken=n_taken,
                    names=", ".join(written),
                )
            )
        own[name] = Watched(name, function, writes=exercise.writes)
    return SimpleNamespace(**own)
