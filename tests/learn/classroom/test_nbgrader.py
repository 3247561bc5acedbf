"""The real nbgrader: an exported assignment is released, submitted and graded, with the points due."""

import copy
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from classroom_solutions import HARMFUL, RIGHT, WRONG, solution

from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.nbgrader import export_nbgrader

pytestmark = [
    pytest.mark.nbgrader,
    pytest.mark.skipif(importlib.util.find_spec("nbgrader") is None, reason="nbgrader is not installed"),
]
NAME = "softmax-backward"
CELL = f"npformer-solution-{NAME}"
ALL = {CELL: RIGHT, "npformer-solution-warmup": solution("warmup")}


def nbgrader(course, *arguments):
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]


def submit(course, student, solutions, *, above=(), without=()):
    """Write the submission of a student.

    Args:
        course: The folder of the course.
        student: The name of the student.
        solutions: The texts of cells, by their names.
        above: The texts of cells that the student puts above all others.
        without: The names of cells that the student deletes.
    """
    notebook = copy.deepcopy(json.loads((course / "release/week-1/week-1.ipynb").read_text()))
    cells = [cell for cell in notebook["cells"] if cell["metadata"]["nbgrader"]["grade_id"] not in without]
    for cell in cells:
        cell["source"] = solutions.get(cell["metadata"]["nbgrader"]["grade_id"], cell["source"])
    new = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook["cells"] = [new | {"id": f"own-{n}", "source": text} for n, text in enumerate(above)] + cells
    file = course / "submitted" / student / "week-1" / "week-1.ipynb"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(notebook))


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = tmp_path_factory.mktemp("course")
    assignment = Assignment((NAME, "warmup"), points=10, seed=77, seconds=2)
    export_nbgrader(assignment, course, "week-1")
    nbgrader(course, "generate_assignment", "week-1")
    return course


def test_the_release_has_neither_solutions_nor_hidden_tests(course):
    text = (course / "release/week-1/week-1.ipynb").read_text()
    assert "raise NotImplementedError()" in text
    assert "keepdims" not in text
    assert "seed=77" not in text
    assert "seed=77" in (course / "source/week-1/week-1.ipynb").read_text()


def test_every_kind_of_submission_has_the_points_that_are_due(course):
    owned = course / "owned"
    submit(course, "right", ALL)
    submit(course, "untouched", {})
    submit(course, "wrong", ALL | {CELL: WRONG})
    for kind in ("prints", "loops", "exits"):
        submit(course, kind, ALL | {CELL: HARMFUL[kind]})
    submit(course, "writes", ALL | {CELL: "open('stolen', 'w').close()\n" + RIGHT})
    submit(course, "above", ALL, above=["import os; os._exit(0)", f"%%bash\ntouch {owned}"])
    submit(course, "forged", {}, above=["def check_exercise(*a, **k): pass"], without=["npformer-setup"])
    nbgrader(course, "autograde", "week-1")
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        points = {each.student.id: each.score for each in book.assignment_submissions("week-1")}
        assert {each.max_score for each in book.assignment_submissions("week-1")} == {20}
    half, none = dict.fromkeys(("wrong", "loops", "exits"), 10), dict.fromkeys(("untouched", "forged"), 0)
    assert points == dict.fromkeys(("right", "prints", "writes", "above"), 20) | half | none
    assert not owned.exists()
    assert not list(Path(course).rglob("stolen"))
    wrong = (course / "autograded/wrong/week-1/week-1.ipynb").read_text()
    assert "entries are wrong, first dx[0, 0]" in wrong
