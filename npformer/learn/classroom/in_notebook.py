"""The functions that the locked cells of an exported notebook call: `start` and `check_exercise`.

nbgrader runs a student's notebook in one Python process and does not isolate it. So while nbgrader grades,
the cells of the student do not run there at all: `start` only notes their texts, and `check_exercise` runs
the one with the solution in npformer's child process. In the student's own Jupyter all cells run as usual.
"""

import os
import re
from typing import Any

from npformer.errors import UserError
from npformer.language import language_of_environment, say, speaking
from npformer.learn.classroom.assess import SOLVED, assess
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.cells import solution_among, without_magics
from npformer.learn.exercises import EXERCISES, Exercise

SETUP = "from npformer.learn.classroom.in_notebook import check_exercise, start\n\nstart()"
# a cell that runs while nbgrader grades: nothing else than these lines, which the exported cells have
_LINE = r"from npformer\.learn\.classroom\.in_notebook import check_exercise, start|start\(\)"
_CHECK = r"check_exercise\(\"[a-z0-9-]+\"(, (points|seed|seconds|memory)=[0-9.e+-]+)*\)"
_OWN = re.compile(rf"((#.*|{_LINE}|{_CHECK})?\n)*")


class NotSolved(AssertionError):
    """The solution of an exercise is wrong. Jupyter shows the diagnosis without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


class _Cells:
    """The texts of the cells that ran, as a transformer of IPython: it gets the lines of each cell.

    Args:
        isolated: True if the student's cells must not run.
    """

    def __init__(self, isolated: bool) -> None:
        self.isolated = isolated
        self.texts: list[str] = []

    def __call__(self, lines: list[str]) -> list[str]:
        text = "".join(lines)
        if _OWN.fullmatch(text if text.endswith("\n") else text + "\n"):
            return lines
        self.texts.append(without_magics(text))
        return [] if self.isolated else lines


_cells = _Cells(isolated=False)


def start() -> None:
    """Note the text of each cell that runs from now on. While nbgrader grades, do not run students' cells.

    Raises:
        UserError: If this is not a notebook.
    """
    from IPython import get_ipython  # a notebook has it, and npformer does not need it

    shell: Any = get_ipython()
    if shell is None:
        raise UserError("start() is for the cells of a notebook: open the notebook in Jupyter")
    _cells.isolated = os.environ.get("NBGRADER_EXECUTION") == "autograde"
    transforms = shell.input_transformers_cleanup
    if _cells not in transforms:
        transforms.insert(0, _cells)


def check_exercise(name: str, **settings: Any) -> None:
    """Check the last cell that defines the functions of an exercise, and print that it is solved.

    The sentences are in the language of the environment.

    Args:
        name: The name of the exercise.
        settings: The other settings of `Assignment`: the limits, and the seed of the hidden trials.

    Raises:
        NotSolved: If it is wrong or missing. The message is the diagnosis.
    """
    with speaking(language_of_environment()):
        _check(EXERCISES.find(name), settings)


def _check(exercise: Exercise, settings: dict[str, Any]) -> None:
    """Do what `check_exercise` does, in the current language."""
    name = exercise.name
    text = solution_among(_cells.texts, exercise)
    if text is None:
        raise NotSolved(
            say(
                "{name}: no cell that ran defines {functions}: run the cell at the top and the cell with "
                "your solution",
                name=name,
                functions=say(" and ").join(exercise.functions),
            )
        )
    result = assess(Assignment((name,), **settings), name, text)
    if result.status != SOLVED:
        raise NotSolved(result.as_text())
    print(say("{name} is {result}", name=name, result=result.message))
