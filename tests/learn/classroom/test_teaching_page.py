"""The computed parts of docs/teaching.md, and the two plans."""

import ast
from pathlib import Path

import pytest

from npformer.learn.classroom.guidance import guidance, lesson_of, sentences
from npformer.learn.classroom.syllabus import SIX_WEEKS, TWELVE_WEEKS
from npformer.learn.classroom.teaching_page import with_computed_parts
from npformer.learn.course.lesson import all_lessons
from npformer.learn.exercises import EXERCISES

PAGE = Path(__file__).parents[3] / "docs" / "teaching.md"


def test_the_page_is_up_to_date():
    """After a change, write it again: npformer class mistakes --write docs/teaching.md."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_computed_parts(text, PAGE.parent) == text


@pytest.mark.parametrize(("plan", "weeks"), [(SIX_WEEKS, 6), (TWELVE_WEEKS, 12)])
def test_a_plan_names_lessons_and_exercises_in_the_order_of_the_course(plan, weeks):
    assert len(plan) == weeks
    numbers = [lesson.number for lesson in all_lessons()]
    read = [numbers.index(number) for week in plan for number in week.lessons]
    assert read == sorted(set(read))
    names = [exercise.name for exercise in EXERCISES]
    solved = [names.index(name) for week in plan for name in week.exercises]
    assert solved == sorted(set(solved))
    for week in plan:
        chapters = {number.split(".")[0] for number in week.lessons}
        assert {str(EXERCISES.find(name).chapter) for name in week.exercises} <= chapters


@pytest.mark.parametrize("week", [*SIX_WEEKS, *TWELVE_WEEKS], ids=lambda week: week.topic)
def test_no_file_of_a_week_imports_what_another_of_the_week_asks_for(week):
    files = {name: ast.parse(EXERCISES.find(name).file_text()) for name in week.exercises}
    asked = {node.name for tree in files.values() for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name, tree in files.items():
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not asked & {alias.name for node in imports for alias in node.names}, name


def test_every_exercise_has_a_lesson_and_mistakes():
    for exercise in EXERCISES:
        assert lesson_of(exercise.name).chapter == exercise.chapter
        assert len(sentences(exercise)) >= 2, "special ones; the shared mistakes have a table of their own"


def test_the_guidance_on_an_exercise_has_all_of_its_mistakes():
    lines = guidance(("softmax",)).splitlines()
    assert lines[0].startswith("softmax (chapter 5)")
    special = sentences(EXERCISES.find("softmax"))
    assert [line.removeprefix("  - ") for line in lines[1 : 1 + len(special)]] == special
    assert "  - the sum of e is averaged: it must be a sum and not a mean" in lines[2 + len(special) :]
