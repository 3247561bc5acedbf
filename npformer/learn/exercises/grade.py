"""Grade the results of the learner's functions: compare them with the correct ones, and explain differences.

This part runs in the parent process, on the observations that the child process made (see observe.py).
"""

import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from npformer.backend import is_array
from npformer.checking.check_target import CheckTarget
from npformer.checking.diagnosis import known_arrays, named_numbers
from npformer.language import GRADER, phrase, say
from npformer.learn.exercises.agreement import LearnersResults, floor_of, results_of
from npformer.learn.exercises.backward_calls import (
    Player,
    float32_gradients,
    gradients_by_name,
    random_dy,
    report_of,
    target_of,
)
from npformer.learn.exercises.exercise import Exercise, Gradients, Values
from npformer.learn.exercises.observe import SHAPES_DIFFER, Watched, observe, verdict_on_error
from npformer.learn.tasks.answer import DamagedAnswer, transported
from npformer.learn.tasks.compare import compare
from npformer.learn.tasks.verdict import Fault, Verdict, observed_error

# the mistake in the learner's code, or "", and a function that returns a sentence about the wrong results
Clues: TypeAlias = tuple[str, Callable[[], str]]


def grade(exercise: Exercise, functions: dict[str, Any], file: str = "") -> Verdict:
    """Run the trials of an exercise in this process and return the verdict.

    Args:
        exercise: The exercise.
        functions: The learner's functions by name.
        file: The file that they come from. Messages about exceptions name its lines.
    """
    observations = [transported(observation) for observation in observe(exercise, functions, file)]
    verdict = judge(exercise, observations, file)
    assert verdict is not None, "a trial that was not observed follows one with an error"
    return verdict


def judge(exercise: Exercise, observations: Sequence[Any], file: str = "") -> Verdict | None:
    """Judge the trials of an exercise up to the first that fails.

    Args:
        exercise: The exercise.
        observations: An observation of each trial, from `observe`.
        file: The learner's file. Messages about exceptions name its lines.

    Returns:
        The verdict: solved, or the first mistake. None if there is no mistake, and observations are missing.

    Raises:
        DamagedAnswer: If an observation does not have the form that `observe` gives it.
    """
    checks, worst = 0, 0.0
    observations, mistake = _without_mistake(observations)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = LearnersResults(exercise, SimpleNamespace(**exercise.solution), observations)
            clues = mistake, found.where_wrong
            for trial, observation in zip(exercise.trials, observations, strict=False):
                if isinstance(trial, Gradients):
                    more, error = _judge_gradients(exercise, trial, observation, clues)
                else:
                    more, error = _judge_values(exercise, trial, observation, clues)
                checks, worst = checks + more, max(worst, error)
    except Fault as fault:
        return _with_mistake(fault.verdict, mistake)
    except DamagedAnswer:
        raise
    except Exception as error:  # the learner's results may be anything
        return verdict_on_error(error, file)
    if len(observations) < len(exercise.trials):
        return None
    return Verdict(
        True, say("solved: {checks} checks, largest relative error {worst:.0e}", checks=checks, worst=worst)
    )


def _without_mistake(observations: Sequence[Any]) -> tuple[Sequence[Any], str]:
    """Return the observations of the trials, and what is wrong in the learner's code, or "" if unknown."""
    match observations:
        case [*trials, {"mistake": str(says)}]:
            return trials, " ".join(says.splitlines())
    return observations, ""


def _with_mistake(verdict: Verdict, mistake: str) -> Verdict:
    """Return the verdict, with the mistake in the learner's code as a clue if it has no better one."""
    if mistake and verdict.clues in ([], [phrase(SHAPES_DIFFER, GRADER)]):
        verdict.clues = [mistake]
    return verdict


def _fault_in(observation: Any) -> Exception:
    """Return the mistake that the child process saw as an exception, or `DamagedAnswer` if it saw none."""
    verdict = observed_error(observation)
    if verdict is None:
        return DamagedAnswer("no results")
    return Fault(verdict.message, tuple(verdict.clues))


# ---------------------------------------------------------------------------------------------------------
# Trials by comparison


def _judge_values(exercise: Exercise, trial: Values, observation: Any, clues: Clues) -> tuple[int, float]:
    """Compare the results with the package's. Return the number of checks and the largest relative error."""
    match observation:
        case {"values": dict(found)}:
            pass
        case _:
            raise _fault_in(observation)
    package = {
        name: Watched(name, function, writes=True, arguments=exercise.arguments(name))
        for name, function in exercise.solution.items()
    }
    right = results_of(trial, SimpleNamespace(**package))
    if list(found) != list(right):
        raise DamagedAnswer("other results")
    arrays = {name: array for function in package.values() for name, array in function.arrays.items()}
    worst = 0.0
    for name, value in right.items():
        compare(
            exercise.label(name, trial),
            value,
            found[name],
            who=_who(exercise),
            arrays=arrays,
            numbers=[(number, type(what)(exercise.say(what))) for number, what in trial.numbers],
            clue=clues[0],
            where=clues[1],
        )
        worst = max(worst, _relative_error(value, found[name]))
    return len(right), worst


# ---------------------------------------------------------------------------------------------------------
# Trials by gradient check


def _judge_gradients(
    exercise: Exercise, trial: Gradients, observation: Any, clues: Clues
) -> tuple[int, float]:
    """Compare the gradients with the package's, then check them.

    Return the number of checks and the largest relative error.
    """
    if not isinstance(observation, dict) or "calls" not in observation:
        raise _fault_in(observation)
    player = Player(observation["calls"], _fault_in(observation))
    package = SimpleNamespace(**exercise.solution)
    _compare_gradients(exercise, trial, gradients_by_name(trial, package, player.wrap), clues)
    for dx in float32_gradients(trial, package, player.wrap):
        if is_array(dx) and dx.dtype != np.float32:
            raise Fault(
                say(
                    "{who} returns correct numbers in {dtype}, but its arguments are float32",
                    who=_who(exercise),
                    dtype=dx.dtype,
                ),
                (
                    say(
                        "the result must have the dtype of dy: use math.sqrt(64) and not np.sqrt(64), and "
                        "give np.zeros a dtype"
                    ),
                ),
            )
    report = report_of(trial, package, player.wrap)
    if not report.ok:
        row = report.worst
        where = say(", first at {entry}", entry=list(row.entry)) if row.entry is not None else ""
        raise Fault(
            say("the gradient check fails at {tensor}{where}", tensor=row.tensor, where=where),
            (row.diagnosis,),
        )
    if observed_error(observation):
        raise _fault_in(observation)
    return len(report.rows), max(row.error for row in report.rows)


def _compare_gradients(exercise: Exercise, trial: Gradients, found: dict[str, Any], clues: Clues) -> None:
    """Compare the gradients with those of the package's backward pass."""
    package = SimpleNamespace(**exercise.solution)
    reference = target_of(trial, package, lambda thing: thing)
    y, cache = reference.run()
    dy = random_dy(trial, y)
    right = reference.vjp(np.array(dy), cache)
    cache = reference.run()[1]
    arrays, numbers = known_arrays(reference, cache), named_numbers(reference, dy)
    settings: dict[str, Any] = getattr(cache, "_asdict", dict)()
    floats = {name: value for name, value in settings.items() if isinstance(value, float)}
    numbers += [
        (value, say("the cache's {name}", name=name))
        for name, value in floats.items()
        if value > 0 and value != 1
    ]
    names = {tensor: gradient_name(reference, tensor) for tensor in right}
    for tensor, value in right.items():
        compare(
            exercise.label(names[tensor], trial),
            value,
            found[tensor],
            who=_who(exercise),
            dy=dy,
            arrays=arrays,
            others={names[other]: right[other] for other in right if other != tensor},
            numbers=numbers,
            floor=floor_of(right),
            clue=clues[0],
            where=clues[1],
        )


def gradient_name(target: CheckTarget, tensor: str) -> str:
    """Return dx for an input x, and weight.grad for a parameter weight."""
    return f"{tensor}.grad" if tensor in target.parameters else f"d{tensor}"


# ---------------------------------------------------------------------------------------------------------
# Functions for both kinds of trials


def _relative_error(right: Any, found: Any) -> float:
    """Return the largest difference, relative to the largest entry."""
    if not is_array(right) or right.dtype.kind != "f":
        return 0.0
    finite = np.isfinite(right)
    scale = max(np.abs(right[finite]).max(initial=0), np.finfo(float).tiny)
    return float(np.abs(right[finite] - np.asarray(found)[finite]).max(initial=0) / scale)


def _who(exercise: Exercise) -> str:
    return say(" or ").join(exercise.solution)
