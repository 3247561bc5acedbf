"""npformer class as a teacher uses it: export, grade, grade again, and what is refused."""

import csv
import json

import pytest

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


def refused(capsys, *arguments):
    assert main(["class", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("npformer: ")
    assert printed.err.count("\n") == 1
    return printed.err


def test_grading_writes_a_table_and_pages(submissions, tmp_path, capsys):
    assert main(["class", "grade", "week-1", "--points", "4", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
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


def test_export_and_mistakes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["class", "export", "nbgrader", "course", "--name", "week-1", "--exercise", "5"]) == 0
    assert "nbgrader generate_assignment week-1" in capsys.readouterr().out
    assert (tmp_path / "course/source/week-1/week-1.ipynb").exists()
    assert main(["class", "export", "gradescope", "gs", "--exercise", NAME, "--seed", "3"]) == 0
    assert "upload autograder.zip" in capsys.readouterr().out
    assert main(["class", "mistakes", "--exercise", NAME]) == 0
    assert "the term with the sum over the row is left out" in capsys.readouterr().out


def test_mistakes_are_one_sentence(submissions, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ada.py").write_text("x = 1\n")
    for arguments, sentence in (
        (["export", "nbgrader"], "export needs the layout and a folder"),
        (["export", "nbgraderr", "x"], "did you mean nbgrader"),
        (["export", "gradescope", "x", "--name", "y"], "--name has an effect only with export nbgrader"),
        (["export", "nbgrader", "x", "--name", "../y"], "--name is '../y'"),
        (["export", "nbgrader", "x", "--exercise", "softmaxx"], "softmax"),
        (["export", "nbgrader", "week-1/ada/softmax-backward.py"], "cannot be written"),
        (["grade"], "grade needs the folder"),
        (["grade", "gone"], "cannot be read"),
        (["grade", "empty"], "has no submissions"),
        (["grade", "other"], "no file in other belongs to an exercise"),
        (["grade", "week-1", "--out", "week-1/feedback"], "is in the folder of the submissions"),
        (["grade", "week-1", "--csv", "gone/x.csv"], "there is no folder"),
        (["grade", "week-1", "--out", "week-1/ada/softmax-backward.py/x"], "week-1"),
        (["mistakes", "softmax"], "mistakes takes no place"),
        (["mistakes", "--write", "gone.md"], "cannot be read"),
        ([], "npformer class needs action"),
    ):
        assert sentence in refused(capsys, *arguments), arguments
    damaged = tmp_path / "week-1-feedback"
    damaged.mkdir(exist_ok=True)
    (damaged / "assignment.json").write_text("{")
    assert "--seed" in refused(capsys, "grade", "week-1")
