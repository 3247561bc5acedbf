"""npformer class as a teacher uses it: export, grade, grade again, and what is refused."""

import csv
import json

import pytest
from commands import refused, said

from npformer.cli.main import main
from npformer.learn.exercises import EXERCISES

NAME = "softmax-backward"
RIGHT = "def softmax_backward(dy, y):\n    return y * (dy - (dy * y).sum(-1, keepdims=True))\n"


@pytest.fixture
def submissions(tmp_path, monkeypatch):
    """Return a folder with two submissions, beside which the command runs."""
    monkeypatch.chdir(tmp_path)
    for student, text in (("ada", RIGHT), ("bob", EXERCISES.find(NAME).file_text())):
        folder = tmp_path / "week-1" / student
        folder.mkdir(parents=True)
        (folder / f"{NAME}.py").write_text(text)
    return tmp_path / "week-1"


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {
            (row["student"], row["exercise"]): (row["points"], row["status"]) for row in csv.DictReader(file)
        }


def test_grading_writes_a_table_and_pages(submissions, tmp_path, capsys):
    printed = said(capsys, "class grade week-1 --points 4 --workers 1")
    assert "Grading 2 students, 1 exercise" in printed
    assert "1 of 2 solutions solved." in printed
    out = tmp_path / "week-1-feedback"
    assert rows(out / "grades.csv") == {("ada", NAME): ("4", "solved"), ("bob", NAME): ("0", "untouched")}
    assert "4 of 4 points" in (out / "ada.html").read_text()
    assert "0 of 4 points" in (out / "bob.html").read_text()
    seed = json.loads((out / "assignment.json").read_text())["seed"]
    stored = {path: path.stat().st_mtime_ns for path in (out / "results").iterdir()}
    assert main(["class", "grade", "week-1/", "--points", "4", "--csv", "other.csv", "--exercise", NAME]) == 0
    assert rows(tmp_path / "other.csv") == rows(out / "grades.csv")
    assert json.loads((out / "assignment.json").read_text())["seed"] == seed
    assert stored == {path: path.stat().st_mtime_ns for path in (out / "results").iterdir()}


def test_an_exercise_whose_files_are_all_unreadable_counts_as_submitted(submissions, tmp_path, capsys):
    (submissions / "ada" / "softmax.py").write_bytes(b"# \xe9\n")
    said(capsys, "class grade week-1 --workers 1")
    assert rows(tmp_path / "week-1-feedback/grades.csv")["ada", "softmax"] == ("0", "unreadable")


def test_export_and_mistakes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "nbgrader generate_assignment week-1" in said(
        capsys, "class export nbgrader course --name week-1 --exercise 5"
    )
    assert (tmp_path / "course/source/week-1/week-1.ipynb").exists()
    assert "upload autograder.zip" in said(
        capsys, "class export gradescope gs --exercise", NAME, "--seed", "3"
    )
    sentence = "sum(dy · y) is not subtracted from dy: the term is left out"
    assert sentence in said(capsys, "class mistakes --exercise", NAME)


def test_a_damaged_note_of_the_assignment_is_refused(submissions, tmp_path, capsys):
    (tmp_path / "week-1-feedback").mkdir()
    (tmp_path / "week-1-feedback/assignment.json").write_text("{")
    assert "--seed" in refused(capsys, "class", "grade", "week-1")
