"""Grade the learner's functions: compare them with the package's, and diagnose the first difference."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking import gradcheck
from npformer.checking.check_target import CheckTarget, fresh_settings
from npformer.checking.diagnosis import known_arrays, named_numbers
from npformer.checking.diagnosis_context import same
from npformer.errors import UserError
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.exercises.mutants import explain
from npformer.learn.tasks.compare import TOLERANCE, compare
from npformer.learn.tasks.verdict import Fault, Verdict, describe_error, error_lines
from npformer.nn.show import named_arrays

SEED = 11  # of the trials' inputs


def grade(exercise: Exercise, functions: dict[str, Any], file: str = "") -> Verdict:
    """Run the trials of an exercise until one fails.

    Args:
        exercise: The exercise.
        functions: The learner's functions by name.
        file: The file that defines them. Messages about exceptions name its lines.

    Returns:
        The verdict: solved, or the first mistake.
    """
    own = SimpleNamespace()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            own = _watched(exercise, functions)
            checks, worst = 0, 0.0
            for trial in exercise.trials:
                if isinstance(trial, Gradients):
                    more, error = _run_gradients(exercise, trial, own)
                else:
                    more, error = _run_values(exercise, trial, own)
                checks, worst = checks + more, max(worst, error)
    except Fault as fault:
        return fault.verdict
    except Exception as error:  # the learner's code may raise anything
        return _verdict_on_error(error, own, file)
    return Verdict(True, f"solved: {checks} checks, largest relative error {worst:.0e}")


def _verdict_on_error(error: Exception, own: Functions, file: str) -> Verdict:
    """Return the verdict on an exception that the learner's code or its caller raised."""
    nothing = [watched.name for watched in vars(own).values() if watched.returned_nothing]
    if nothing and "NoneType" in str(error) and not error_lines(error, file):  # its caller needed a result
        return Verdict(
            False, f"{nothing[0]} returns nothing (None): fill in its body, and end it with a return"
        )
    text = str(error)
    clues = []
    if isinstance(error, ValueError) and any(word in text for word in ("matmul", "broadcast", "reshape")):
        clues = ["shapes that do not fit: is an array transposed, or are two arrays exchanged?"]
    return Verdict(False, describe_error(error, file), clues)


# ---------------------------------------------------------------------------------------------------------
# The learner's functions


class Watched:
    """A function that raises `Fault` if it writes into one of its array arguments.

    Args:
        name: The function's name, for messages.
        function: The function.
        writes: True if it may write into its arguments.
    """

    def __init__(self, name: str, function: Callable[..., Any], *, writes: bool = False) -> None:
        self.name, self.function, self.writes = name, function, writes
        self.returned_nothing = False
        self.arrays: dict[str, Array] = {}  # the array arguments of the last call, by name
        self.__signature__ = inspect.signature(function)  # gradcheck reads the names of the arguments

    def __call__(self, *args: Any, **settings: Any) -> Any:
        names = list(self.__signature__.parameters)
        self.arrays = dict(_array_arguments(names, args))
        before = {name: np.array(array) for name, array in self.arrays.items()}
        returned = self.function(*args, **settings)
        self.returned_nothing = returned is None
        for name, old in before.items():
            unchanged = np.array_equal(old, self.arrays[name], equal_nan=old.dtype.kind in "fc")
            if not self.writes and not unchanged:
                what = "the cache" if name.startswith("cache") else "its input"
                raise Fault(
                    f"{self.name} writes into {name}, {what}, which must not change",
                    ("input modified: y *= 2 and y[i] = 0 change the caller's array; make a new array",),
                )
        self.arrays = before  # the diagnosis needs the arrays as they were passed
        return returned


def _array_arguments(names: Sequence[str], args: Sequence[Any]) -> Iterator[tuple[str, Array]]:
    """Yield (name, array) for every array argument. An array in a cache has the name cache.name."""
    for index, thing in enumerate(args):
        name = names[index] if index < len(names) else f"argument {index + 1}"
        if is_array(thing):
            yield name, thing
        else:
            yield from ((f"{name}.{inner}", array) for inner, array in named_arrays(thing))


def _watched(exercise: Exercise, functions: dict[str, Any]) -> Functions:
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
        expected = exercise.arguments(name)
        if n_taken < len(expected) and not any(p.kind == p.VAR_POSITIONAL for p in taken):
            raise Fault(f"{name} takes {n_taken} arguments and must take ({', '.join(expected)})")
        own[name] = Watched(name, function, writes=exercise.writes)
    return SimpleNamespace(**own)


def _who(own: Functions) -> str:
    """Return the names of the learner's functions, as the subject of a message."""
    return " or ".join(vars(own))


# ---------------------------------------------------------------------------------------------------------
# Trials by comparison


def _run_values(exercise: Exercise, trial: Values, own: Functions) -> tuple[int, float]:
    """Compare the results with the package's. Return the number of checks and the largest relative error."""

    def run(functions: Functions) -> dict[str, Any]:
        return trial.run(functions, np.random.default_rng(SEED))

    right = run(SimpleNamespace(**exercise.solution))
    found = run(own)
    arrays = {name: array for watched in vars(own).values() for name, array in watched.arrays.items()}
    worst = 0.0
    for name, value in right.items():
        compare(
            _labelled(name, trial),
            value,
            found[name],
            who=_who(own),
            arrays=arrays,
            numbers=trial.numbers,
            explain=_explainer(exercise, run, found, name),
        )
        worst = max(worst, _relative_error(value, found[name]))
    return len(right), worst


# ---------------------------------------------------------------------------------------------------------
# Trials by gradient check


def _run_gradients(exercise: Exercise, trial: Gradients, own: Functions) -> tuple[int, float]:
    """Compare the gradients with the package's, then check them.

    Return the number of checks and the largest relative error.
    """

    def target_of(functions: Functions) -> CheckTarget:
        rng = np.random.default_rng(SEED)
        thing, *inputs = trial.make(functions, rng)
        return CheckTarget(thing, inputs, trial.settings, randomize=True, rng=rng)

    def gradients(functions: Functions) -> dict[str, Any]:
        target = target_of(functions)
        return target.vjp(np.array(dy), target.run()[1])

    package = SimpleNamespace(**exercise.solution)
    reference = target_of(package)
    y, cache = reference.run()
    dy = np.random.default_rng(SEED + 1).standard_normal(np.shape(y)) if np.ndim(y) else 0.8
    right = reference.vjp(np.array(dy), cache)
    found = _own_gradients(target_of(own), dy, own)
    cache = reference.run()[1]
    arrays, numbers = known_arrays(reference, cache), named_numbers(reference, dy)
    settings: dict[str, Any] = getattr(cache, "_asdict", dict)()
    floats = {name: value for name, value in settings.items() if isinstance(value, float)}
    numbers += [(value, f"the cache's {name}") for name, value in floats.items() if value > 0 and value != 1]
    names = {tensor: gradient_name(reference, tensor) for tensor in right}
    for tensor, value in right.items():
        compare(
            _labelled(names[tensor], trial),
            value,
            found[tensor],
            who=_who(own),
            dy=dy,
            arrays=arrays,
            others={names[other]: right[other] for other in right if other != tensor},
            numbers=numbers,
            explain=_explainer(exercise, gradients, found, tensor),
        )
    _check_precision(trial, own)
    return _check(trial, own)


def _own_gradients(target: CheckTarget, dy: Any, own: Functions) -> dict[str, Any]:
    """Return the learner's gradients by name.

    Raises:
        Fault: If the learner's function returned something else.
    """
    returned = []
    backward = target.backward

    def recorded(*args: Any) -> Any:
        returned.append(backward(*args))
        return returned[-1]

    target.backward = recorded
    try:
        return target.vjp(np.array(dy), target.run()[1])
    except UserError:
        if not returned:
            raise
        result = returned[-1]
        expected = [f"d{name}" for name in target.real_inputs]
        if result is None:
            raise Fault(
                f"{_who(own)} returns nothing (None): fill in its body and return {', '.join(expected)}"
            ) from None
        if isinstance(result, list):
            raise Fault(
                f"{_who(own)} returns a list: return the arrays ({', '.join(expected)}) as a tuple"
            ) from None
        count = f"{len(result)} gradients" if isinstance(result, tuple) else "1 gradient"
        raise Fault(
            f"{_who(own)} returns {count} and must return {len(expected)}, one for each array: "
            f"({', '.join(expected)})"
        ) from None


def _check(trial: Gradients, own: Functions) -> tuple[int, float]:
    """Run the gradient checker, which does not depend on the package's backward pass.

    Return the number of checks and the largest relative error.
    """
    thing, *inputs = trial.make(own, np.random.default_rng(SEED))
    report = gradcheck(thing, *inputs, seed=SEED, **trial.settings)
    if not report.ok:
        row = report.worst
        where = f", first at {list(row.entry)}" if row.entry is not None else ""
        raise Fault(f"the gradient check fails at {row.tensor}{where}", (row.diagnosis,))
    return len(report.rows), max(row.error for row in report.rows)


def _check_precision(trial: Gradients, own: Functions) -> None:
    """Check that float32 arrays give float32 gradients."""
    thing, *inputs = trial.make(own, np.random.default_rng(SEED))
    float32_inputs = [x.astype(np.float32) if is_array(x) and x.dtype.kind == "f" else x for x in inputs]
    forward, backward = thing if isinstance(thing, tuple) else (thing.forward, thing.backward)
    y, cache = forward(*float32_inputs, **fresh_settings(forward, trial.settings))
    if np.ndim(y) and y.dtype != np.float32:
        return  # the layer itself holds float64
    returned = backward(np.ones_like(y) if np.ndim(y) else 1.0, cache)
    for dx in returned if isinstance(returned, tuple) else (returned,):
        if is_array(dx) and dx.dtype != np.float32:
            raise Fault(
                f"{_who(own)} returns the right numbers as {dx.dtype}, but its arguments are float32",
                ("dtype wrong: keep that of dy (math.sqrt(64), not np.sqrt(64); np.zeros with a dtype)",),
            )


def gradient_name(target: CheckTarget, tensor: str) -> str:
    """Return dx for an input x, and weight.grad for a parameter weight."""
    return f"{tensor}.grad" if tensor in target.parameters else f"d{tensor}"


# ---------------------------------------------------------------------------------------------------------
# Functions for both kinds of trials


def _explainer(
    exercise: Exercise, run: Callable[[Functions], dict[str, Any]], found: dict[str, Any], name: str
) -> Callable[[], str]:
    """Return a function that searches for a change of the package's code that gives the learner's result.

    The changed code must give all results of the learner up to `name`, which is the first wrong one. Later
    results may differ, because other mistakes may affect them.
    """
    names = list(found)[: list(found).index(name) + 1]

    def agrees(functions: Functions) -> bool:
        try:
            result = run(functions)
            return all(_equal(result[name], found[name]) for name in names)
        except Exception:  # a changed function may fail in any way
            return False

    # the package's methods have self where the stub has the argument layer
    first = exercise.arguments(exercise.functions[0])[0]
    return lambda: explain(exercise.solution, agrees).replace("self.", f"{first}.")


def _equal(a: Any, b: Any) -> bool:
    """Return whether two results agree to `TOLERANCE`. NaN agrees with NaN."""
    if not is_array(a) or not is_array(b) or a.dtype.kind not in "bif" or b.dtype.kind not in "bif":
        return type(a) is type(b) and bool(np.all(a == b))
    if a.shape != b.shape:
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a)
    return np.array_equal(finite, np.isfinite(b)) and same(a[finite], b[finite], TOLERANCE)


def _relative_error(right: Any, found: Any) -> float:
    """Return the largest difference, relative to the largest entry."""
    if not is_array(right) or right.dtype.kind != "f":
        return 0.0
    finite = np.isfinite(right)
    scale = max(np.abs(right[finite]).max(initial=0), np.finfo(float).tiny)
    return float(np.abs(right[finite] - np.asarray(found)[finite]).max(initial=0) / scale)


def _labelled(name: str, trial: Gradients | Values) -> str:
    return f"{name} ({trial.label})" if trial.label else name
