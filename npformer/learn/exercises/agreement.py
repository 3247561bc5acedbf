"""The agreement of a changed solution with the learner's results in all trials."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.language import say
from npformer.learn.exercises.backward_calls import Player, gradients_by_name, random_dy, target_of
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.exercises.inputs import with_kept_inputs
from npformer.learn.tasks.answer import DamagedAnswer
from npformer.learn.tasks.compare import TOLERANCE, tolerance_of
from npformer.learn.tasks.verdict import Fault
from npformer.mistakes.patterns import same

CERTAINLY_WRONG = 1e-6  # a relative error far above all tolerances

Results = dict[str, Any]  # the results of a trial by name


def results_of(trial: Gradients | Values, functions: Functions) -> Results:
    """Return the results of a trial: the values, or the gradients of all tensors."""
    if isinstance(trial, Values):
        return trial.run(functions, np.random.default_rng(trial.seed))
    target = target_of(trial, functions, lambda thing: thing)
    y, cache = target.run()
    return target.vjp(np.array(random_dy(trial, y)), cache)


class LearnersResults:
    """The learner's results in all trials up to the first exception.

    Args:
        exercise: The exercise.
        package: The package's functions.
        observations: The observations of the trials.
    """

    def __init__(self, exercise: Exercise, package: Functions, observations: Sequence[Any]) -> None:
        self._trials = list(zip(exercise.trials, observations, strict=False))
        self._exercise, self._package = exercise, package
        self._found: dict[int, Results | None] = {}

    def agree(self, functions: Functions, first: int) -> bool:
        """Return whether other functions give all of the learner's results in all trials.

        Args:
            functions: The functions.
            first: The number of the first trial with a wrong result. It is compared first, because most
                other functions differ there.
        """
        others = (index for index in range(len(self._trials)) if index != first)
        return all(self._agree_in(functions, index) for index in (first, *others))

    def first_wrong(self) -> int | None:
        """Return the number of the first trial with a wrong result, or None."""
        return next((i for i in range(len(self._trials)) if not self._agree_in(self._package, i)), None)

    def has_wrong_numbers(self, index: int) -> bool:
        """Return whether a wrong result of a trial holds other numbers than NaN and infinity."""
        due, found = results_of(self._trials[index][0], self._package), self._results(index) or {}
        wrong = (value for name, value in found.items() if not _agrees(due[name], value))
        return any(not is_array(x) or x.dtype.kind != "f" or np.isfinite(x).any() for x in wrong)

    def where_wrong(self) -> str:
        """Return a sentence about the only trial, or the only results, that are wrong, or ""."""
        wrong: list[str] = []
        right: list[str] = []
        for index, (trial, _) in enumerate(self._trials):
            due, found = results_of(trial, self._package), self._results(index)
            if found is None:
                continue
            floor = floor_of(due) if isinstance(trial, Gradients) else 0.0
            for name in due:
                label = self._exercise.label(name, trial)
                (right if equal(due[name], found[name], floor) else wrong).append(label)
        if len(wrong) == 1 and right:
            return say(
                "only {wrong} is wrong: the other {n_right} results are right",
                wrong=wrong[0],
                n_right=len(right),
            )
        return ""

    def _agree_in(self, functions: Functions, index: int) -> bool:
        """Return whether all results of a trial agree."""
        found = self._results(index)
        if found is None:
            return True  # there is nothing to compare
        trial = self._trials[index][0]
        try:
            result = results_of(trial, with_kept_inputs(self._exercise, vars(functions)))
            floor = floor_of(result) if isinstance(trial, Gradients) else 0.0
            return all(equal(result[name], value, floor) for name, value in found.items())
        except Exception:  # a changed function may fail in any way
            return False

    def _results(self, index: int) -> Results | None:
        """Return the learner's results in a trial, or None if there are none."""
        if index not in self._found:
            self._found[index] = self._read(*self._trials[index])
        return self._found[index]

    def _read(self, trial: Gradients | Values, observation: Any) -> Results | None:
        match observation:
            case {"values": dict(values)}:
                return values
            case {"calls": calls} if isinstance(trial, Gradients):
                try:
                    return gradients_by_name(
                        trial, self._package, Player(calls, DamagedAnswer("no call")).wrap
                    )
                except (DamagedAnswer, Fault):
                    return None
        return None


def _agrees(due: Any, value: Any) -> bool:
    try:
        return equal(due, value)
    except Exception:  # the learner's result may be anything
        return False


def floor_of(gradients: Results) -> float:
    """Return the smallest number that errors of gradients are relative to: 1/1000 of the largest entry.

    A gradient that is 0 in exact arithmetic, as that of the bias of the keys, consists of rounding errors.
    """
    finite = (np.abs(np.asarray(g)[np.isfinite(g)]) for g in gradients.values())
    return 1e-3 * max((float(g.max(initial=0)) for g in finite), default=0.0)


def far_from(found: Results, due: Results) -> bool:
    """Return whether gradients are wrong by so much that the comparison with the correct ones will fail."""
    floor = floor_of(due)
    return any(_is_far(np.asarray(found[name]), np.asarray(right), floor) for name, right in due.items())


def _is_far(found: Array, right: Array, floor: float) -> bool:
    if found.shape != right.shape or found.dtype.kind not in "bif":
        return True
    error = np.abs(found.astype(np.float64) - right).max(initial=0)
    return not error <= CERTAINLY_WRONG * max(floor, float(np.abs(right).max(initial=0)))


def equal(a: Any, b: Any, floor: float = 0.0) -> bool:
    """Return whether two results agree up to rounding errors. NaN agrees with NaN.

    Args:
        a, b: The results.
        floor: The smallest number that the difference is relative to.
    """
    if is_array(a) != is_array(b):  # NumPy's functions return numbers for arrays without axes
        a, b = (np.asarray(x) if isinstance(x, np.generic) else x for x in (a, b))
    if not is_array(a) or not is_array(b) or a.dtype.kind not in "bif" or b.dtype.kind not in "bif":
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=TOLERANCE)
        return type(a) is type(b) and bool(np.all(a == b))
    if a.shape != b.shape:
        return False
    tolerance = max(tolerance_of(a), tolerance_of(b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return False
    a, b = a[finite], b[finite]
    close = bool(np.abs(a - b).max(initial=0) <= tolerance * floor)
    return close or same(a, b, tolerance)
