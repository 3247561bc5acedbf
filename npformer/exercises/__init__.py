"""Exercises that grade themselves: the learner writes a function, and it is held against the package's."""

import difflib

from npformer.errors import UserError
from npformer.exercises.exercise import Exercise
from npformer.exercises.fault import Verdict
from npformer.exercises.grade import grade
from npformer.exercises.topics import ALL

EXERCISES = {exercise.name: exercise for exercise in ALL}

__all__ = ["EXERCISES", "Exercise", "Verdict", "find", "grade"]


def find(name: str) -> Exercise:
    """The exercise of this name. Errors: UserError for an unknown one, with the nearest."""
    if name in EXERCISES:
        return EXERCISES[name]
    near = difflib.get_close_matches(name.replace("_", "-"), EXERCISES, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else "npformer exercise list names them all"
    raise UserError(f"there is no exercise {name!r}: {hint}")
