"""The files and cells that students get, and the same with the solution for the teacher."""

import re

from npformer.learn.exercises import Exercise
from npformer.learn.exercises.exercise import SOLUTION

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"  # nbgrader replaces what stands between them


def solved_stub(exercise: Exercise) -> str:
    """Return the stub of an exercise with the plain solution in each function, between `BEGIN` and `END`."""
    text = re.sub(
        rf"{SOLUTION}\n((?: {{4}}.+\n)*)", rf"    {BEGIN}\n\1    {END}\n", exercise.translated(exercise.code)
    )
    return text.strip("\n") + "\n"
