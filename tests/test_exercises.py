"""The exercises: each is solved by the package's own functions, and none by its stub."""

import ast
import inspect

import pytest

from npformer import UserError
from npformer.exercises import EXERCISES, find, grade
from npformer.exercises.child import check_file

ALL = list(EXERCISES.values())


def solved_text(exercise):
    """A learner's file that takes the package's functions for its own."""
    lines = [exercise.file_text()]
    for name, function in exercise.solution.items():
        owner, _, attribute = function.__qualname__.partition(".")
        lines += [
            f"from {function.__module__} import {owner}",
            f"{name} = {owner}{'.' * bool(attribute)}{attribute}",
        ]
    return "\n".join(lines) + "\n"


def test_there_are_enough_in_every_lesson():
    assert len(ALL) >= 25
    assert {exercise.lesson for exercise in ALL} == set(range(23)) - {15, 16}  # to look at, and to time
    assert [e.lesson for e in ALL] == sorted(e.lesson for e in ALL)


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_the_package_solves_it(exercise, tmp_path):
    file = tmp_path / f"{exercise.name}.py"
    file.write_text(solved_text(exercise), encoding="utf-8")
    verdict = check_file(exercise.name, str(file))
    assert verdict.solved, verdict
    assert "checks" in verdict.says


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_the_stub_does_not(exercise):
    space = {}
    exec(compile(exercise.file_text(), "stub", "exec"), space)
    verdict = grade(exercise, space)
    assert not verdict.solved
    assert "nothing" in verdict.says or "should be" in verdict.says


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_its_parts_fit_together(exercise):
    assert set(exercise.functions) == set(exercise.solution)
    assert 2 <= len(exercise.hints) <= 3
    assert len(exercise.title) <= 46, "the list fits a terminal of 100 columns"
    for node in ast.parse(exercise.stub).body:
        if isinstance(node, ast.FunctionDef):
            assert ast.get_docstring(node), "says what to write, and the shapes"
            assert "eturns" in ast.get_docstring(node) or "eturns" in exercise.stub
    assert all(len(line) <= 110 for line in exercise.file_text().splitlines())
    for function in exercise.solution.values():
        assert inspect.getsourcefile(function).replace("\\", "/").count("/npformer/")


def test_an_unknown_exercise_names_the_nearest():
    with pytest.raises(UserError, match="did you mean softmax-backward"):
        find("softmax_backwards")
    with pytest.raises(UserError, match="list names them all"):
        find("zzz")
