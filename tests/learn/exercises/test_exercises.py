"""The exercises: the package's own functions solve each of them, and the unchanged stub does not."""

import ast
import inspect

import pytest
from mistake_tables import drawn

from npformer.language import speaking
from npformer.learn.course.chapters import TITLES
from npformer.learn.exercises import EXERCISES, explain, grade
from npformer.learn.tasks.process import check_here

ALL = list(EXERCISES)
each = pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)


def solved_text(exercise):
    """Return a learner's file that imports the package's functions."""
    lines = [exercise.file_text()]
    for name, function in exercise.solution.items():
        owner, _, attribute = function.__qualname__.partition(".")
        lines.append(f"from {function.__module__} import {owner}")
        lines.append(f"{name} = {owner}{'.' * bool(attribute)}{attribute}")
    return "\n".join(lines) + "\n"


def test_every_chapter_has_exercises():
    assert len(ALL) >= 25
    without = {16, 25}  # the chapters on timing and on the models of other people
    assert {exercise.chapter for exercise in ALL} == set(TITLES) - without
    assert [e.chapter for e in ALL] == sorted(e.chapter for e in ALL)


@pytest.mark.parametrize("name", drawn(EXERCISES.names(), 4))
def test_the_package_solves_it(name, tmp_path):
    exercise = EXERCISES.find(name)
    file = tmp_path / f"{exercise.name}.py"
    file.write_text(solved_text(exercise), encoding="utf-8")
    verdict = check_here(EXERCISES, exercise, str(file))
    assert verdict.solved, verdict
    assert "checks" in verdict.message


@pytest.mark.parametrize("name", drawn(EXERCISES.names(), 3))
def test_the_stub_does_not_solve_it(name, monkeypatch):
    exercise = EXERCISES.find(name)
    monkeypatch.setattr(explain, "SECONDS", 0)  # nothing was written, so that no change explains it
    space = {}
    exec(compile(exercise.file_text(), "stub", "exec"), space)
    verdict = grade(exercise, space)
    assert not verdict.solved
    assert "nothing" in verdict.message or "should be" in verdict.message


def test_no_stub_imports_what_an_exercise_asks_for():
    """In a notebook with several exercises, such an import would replace the student's own function."""
    asked = {name for exercise in ALL for name in exercise.solution}
    for exercise in ALL:
        nodes = [n for n in ast.walk(ast.parse(exercise.stub)) if isinstance(n, ast.Import | ast.ImportFrom)]
        bound = {alias.asname or alias.name for node in nodes for alias in node.names}
        assert not bound & asked, exercise.name


def code_of(stub):
    """Return the functions of a stub without their docstrings."""
    functions = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    return [ast.dump(part) for node in functions for part in (node.args, *node.body[1:])]


@each
def test_the_declaration_is_complete(exercise):
    assert set(exercise.functions) == set(exercise.solution)
    assert exercise.shown_stub == exercise.stub
    with speaking("zh_CN"):
        assert code_of(exercise.shown_stub) == code_of(exercise.stub)
    assert 2 <= len(exercise.hints) <= 3
    assert len(exercise.title) <= 46, "the list fits a terminal of 100 columns"
    for node in ast.parse(exercise.stub).body:
        if isinstance(node, ast.Assign):
            assert exercise.code.count(node.targets[0].id) > 1, "the solution uses it"
        if isinstance(node, ast.FunctionDef):
            assert ast.get_docstring(node), "says what to write, and the shapes"
            assert "eturns" in ast.get_docstring(node) or "eturns" in exercise.stub
    assert all(len(line) <= 110 for line in exercise.file_text().splitlines())
    for function in exercise.solution.values():
        assert inspect.getsourcefile(function).replace("\\", "/").count("/npformer/")
