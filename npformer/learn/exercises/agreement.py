"""The agreement of a changed solution with the learner's results in all trials."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.backend import is_array
from npformer.checking.diagnosis_context import same
from npformer.learn.exercises.backward_calls import SEED, Player, gradients_by_name, random_dy, target_of
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.tasks.answer import DamagedAnswer
from npformer.learn.tasks.compare import TOLERANCE
from npformer.learn.tasks.verdict import Fault

Results = dict[str, Any]  # the results of a trial by name


def results_of(trial: Gradients | Values, functions: Functions) -> Results:
    """Return the results of a trial: the values, or the gradients of all tensors."""
    if isinstance(trial, Values):
        return trial.run(functions, np.random.default_rng(SEED))
    target = target_of(trial, functions, lambda thing: thing)
    y, cache = target.run()
    return target.vjp(np.array(random_dy(y)), cache)


class LearnersResults:
    """The learner's results in all trials up to the first exception.

    Args:
        exercise: The exercise.
        package: The package's functions.
        observations: The observations of the trials.
    """

    def __init__(self, exercise: Exercise, package: Functions, observations: Sequence[Any]) -> None:
        self._trials = list(zip(exercise.trials, observations, strict=False))
        self._package = package
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

    def _agree_in(self, functions: Functions, index: int) -> bool:
        """Return whether all results of a trial agree."""
        found = self._results(index)
        if found is None:
            return True  # there is nothing to compare
        trial = self._trials[index][0]
        try:
            result = results_of(trial, functions)
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


def floor_of(gradients: Results) -> float:
    """Return the smallest number that errors of gradients are relative to: 1/1000 of the largest entry.

    A gradient that is 0 in exact arithmetic, as that of the bias of the keys, consists of rounding errors.
    """
    finite = (np.abs(np.asarray(g)[np.isfinite(g)]) for g in gradients.values())
    return 1e-3 * max((float(g.max(initial=0)) for g in finite), default=0.0)


def equal(a: Any, b: Any, floor: float = 0.0) -> bool:
    """Return whether two results agree to `TOLERANCE`. NaN agrees with NaN.

    Args:
        a, b: The results.
        floor: The smallest number that the difference is relative to.
    """
    if not is_array(a) or not is_array(b) or a.dtype.kind not in "bif" or b.dtype.kind not in "bif":
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=TOLERANCE)
        return type(a) is type(b) and bool(np.all(a == b))
    if a.shape != b.shape:
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return False
    a, b = a[finite], b[finite]
    close = bool(np.abs(a - b).max(initial=0) <= TOLERANCE * floor)
    return close or same(a, b, TOLERANCE)
