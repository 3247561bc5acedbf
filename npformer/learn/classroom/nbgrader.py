"""Write an assignment for nbgrader: a notebook in the layout of its folder `source`.

Each exercise has a cell with the stub, whose solution stands between two marks, and a locked cell of tests
with the points. nbgrader removes the solution and the hidden tests from the version for students, and puts
the hidden tests back when it grades. The format of the metadata is version 3 of nbgrader's schema.
"""

import json
from pathlib import Path
from typing import Any

from npformer.errors import UserError
from npformer.language import say
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.in_notebook import SETUP
from npformer.learn.classroom.stub import solved_stub
from npformer.learn.exercises import EXERCISES, Exercise
from npformer.storage.atomic import create_atomically, explain_os_errors, make_folder

SCHEMA = 3  # of nbgrader's metadata
SETUP_ID = "npformer-setup"

CONFIG = '''\
"""Settings of nbgrader for assignments with exercises of npformer."""

c = get_config()  # noqa: F821 - nbgrader defines it

# seconds for a cell: npformer stops a solution itself, and says why
c.Execute.timeout = {timeout}

# students' cells do not run in nbgrader's process: the cell that sees to this comes first, wherever it was
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "npformer.learn.classroom.setup_first.put_setup_first",
    "nbgrader.preprocessors.CheckCellMetadata",
]
'''


def export_nbgrader(assignment: Assignment, folder: Path, name: str) -> list[Path]:
    """Write `source/NAME/NAME.ipynb` into the folder of a course, and `nbgrader_config.py` if there is none.

    Args:
        assignment: The assignment.
        folder: The folder of the course.
        name: The name of the assignment, which is also the name of the notebook.

    Returns:
        The files that were written.

    Raises:
        UserError: If the notebook already exists, or if a file cannot be written.
    """
    notebook, config = folder / "source" / name / f"{name}.ipynb", folder / "nbgrader_config.py"
    make_folder(notebook.parent)
    if notebook.exists():
        raise UserError(
            f"{notebook} already exists: give another name with --name, or move it away to write it again"
        )
    written = [notebook]
    with explain_os_errors(notebook, "written", "give another folder"):
        create_atomically(notebook, notebook_text(assignment, name).encode())
    if not config.exists():
        timeout = 4 * (5 * round(assignment.seconds) + 60)
        with explain_os_errors(config, "written", "give another folder"):
            create_atomically(config, CONFIG.format(timeout=timeout).encode())
        written.append(config)
    return written


def notebook_text(assignment: Assignment, name: str) -> str:
    """Return the text of the notebook of the teacher, in format 4.5.

    Args:
        assignment: The assignment.
        name: The name of the assignment.
    """
    title = name.replace("-", " ").replace("_", " ").capitalize()
    memory = assignment.memory / (1 << 30)
    introduction = say(
        "Complete the function in the cell below each title, run the cell, and then run the cell of tests "
        "below it. The\n"
        "tests say what is wrong, in which entry, and often why.\n\n"
        "- Write each solution in **one cell**, with its imports and with all functions that it needs: the "
        "tests run\n"
        "  this cell alone, in a process of its own.\n"
        "- An exercise may take {seconds:g} seconds and {memory:g} GB of memory.\n"
        "- When your work is graded, the tests also run on inputs that you do not see here.",
        seconds=assignment.seconds,
        memory=memory,
    )
    first = text_cell("npformer-introduction", f"# {title}\n\n{introduction}")
    cells = [first, code_cell(SETUP_ID, SETUP, locked=True)]
    for number, each in enumerate(assignment.exercises, 1):
        cells += _exercise_cells(assignment, EXERCISES.find(each), number)
    content = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _exercise_cells(assignment: Assignment, exercise: Exercise, number: int) -> list[dict[str, Any]]:
    """Return the cells of one exercise: its title, the solution, and the tests."""
    name, points = exercise.name, f"{assignment.points:g}"
    title = say(
        "## Exercise {number}: {title}\n\n"
        "Chapter {chapter} of the course (`npformer lesson {chapter}`), {points} points. A hint: "
        "`npformer exercise hint {name}`.",
        number=number,
        title=exercise.title,
        chapter=exercise.chapter,
        points=points,
        name=name,
    )
    return [
        text_cell(f"npformer-title-{name}", title),
        code_cell(f"npformer-solution-{name}", solved_stub(exercise).rstrip(), solution=True),
        code_cell(f"npformer-tests-{name}", _tests(assignment, name), points=assignment.points),
    ]


def _tests(assignment: Assignment, name: str) -> str:
    """Return the text of a cell of tests: those that students see, and those that nbgrader hides."""
    limits = f"seconds={assignment.seconds:g}, memory={assignment.memory}"
    lines = [f'check_exercise("{name}", {limits})']
    if assignment.seed is not None:
        hidden = f'check_exercise("{name}", {limits}, seed={assignment.seed})'
        lines += ["### BEGIN HIDDEN TESTS", hidden, "### END HIDDEN TESTS"]
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------------
# Cells


def text_cell(cell_id: str, text: str) -> dict[str, Any]:
    """Return a locked cell of text."""
    return {"cell_type": "markdown", "source": text} | _marked(cell_id, locked=True)


def code_cell(
    cell_id: str, text: str, *, locked: bool = False, solution: bool = False, points: float | None = None
) -> dict[str, Any]:
    """Return a cell of code.

    Args:
        cell_id: The name of the cell for nbgrader.
        text: The text.
        locked: True if students must not change it. Tests are locked in any case.
        solution: True for a cell that students complete.
        points: The points, for a cell of tests.
    """
    marked = _marked(cell_id, locked=locked or points is not None, solution=solution, points=points)
    return {"cell_type": "code", "execution_count": None, "outputs": [], "source": text} | marked


def _marked(
    cell_id: str, *, locked: bool, solution: bool = False, points: float | None = None
) -> dict[str, Any]:
    """Return the id and the metadata of a cell."""
    marks: dict[str, Any] = {
        "schema_version": SCHEMA,
        "grade_id": cell_id,
        "grade": points is not None,
        "solution": solution,
        "locked": locked,
        "task": False,
    }
    more = {} if points is None else {"points": points}
    return {"id": cell_id[:64], "metadata": {"nbgrader": marks | more}}
