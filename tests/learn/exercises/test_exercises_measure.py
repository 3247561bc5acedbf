"""The solutions that measure the grader: their files are complete and well formed.

Those of development are graded. The held-out ones are not: tests/score_grader.py only counts what the grader
says of them.
"""

import ast

import pytest
from mistake_tables import count_steps, drawn
from read_measure import HALVES, KINDS, has_words, read_measure, scores

from npformer.learn.exercises.topics import ALL

# the grader was measured before chapter 15 and the chapters from 26 on had exercises
EXERCISES = {exercise.name: exercise for exercise in ALL if exercise.chapter < 26 and exercise.chapter != 15}
COUNTS = {"wrong": 75, "right": 25, "unnameable": 10}
FILES = [(kind, half) for kind in KINDS for half in HALVES]
SOLUTIONS = {(kind, half): read_measure(kind, half) for kind, half in FILES}


@pytest.mark.parametrize(("kind", "half"), FILES)
def test_a_file_has_all_its_solutions(kind, half):
    solutions = SOLUTIONS[kind, half]
    assert len(solutions) == COUNTS[kind]
    assert {solution.exercise for solution in solutions} <= set(EXERCISES)
    if kind != "unnameable":
        chapters = {EXERCISES[solution.exercise].chapter for solution in solutions}
        assert chapters == {exercise.chapter for exercise in EXERCISES.values()}


@pytest.mark.parametrize(("kind", "half"), FILES)
def test_a_solution_defines_the_functions_of_its_exercise(kind, half):
    for solution in SOLUTIONS[kind, half]:
        compile(solution.code, solution.exercise, "exec")
        defined = {node.name for node in ast.parse(solution.code).body if isinstance(node, ast.FunctionDef)}
        assert set(EXERCISES[solution.exercise].functions) <= defined, solution


@pytest.mark.parametrize("half", HALVES)
def test_the_sentence_of_a_mistake_has_its_words(half):
    missing = [s.mistake for s in SOLUTIONS["wrong", half] if not has_words(s.mistake, s.words)]
    assert missing == []


def test_a_word_counts_at_the_beginning_of_a_word_and_a_short_one_alone():
    assert has_words("The sums run over the FIRST axis.", (("sum",), ("row", "axis")))
    assert not has_words("This assumption is about rows.", (("sum",),))
    assert has_words("The factor v is missing.", (("v",),))
    assert not has_words("The value is wrong.", (("v",),))
    assert has_words("1 - z is there twice", (("1 - z",),))


def test_the_mistakes_of_development_are_named(tmp_path, monkeypatch):
    """By day, a fifth of the solutions stands for all of them."""
    count_steps(monkeypatch, edits=500, mistakes=800)
    counts = scores(drawn(SOLUTIONS["wrong", "development"], 5), tmp_path)
    assert counts["accepted"] == 0
    assert counts["named"] >= 0.9 * counts["solutions"], counts
    assert counts["exact line"] >= 0.5 * counts["solutions"], counts


def test_the_right_solutions_of_development_are_accepted(tmp_path):
    counts = scores(SOLUTIONS["right", "development"], tmp_path)
    assert counts["accepted"] == counts["solutions"]


def test_no_mistake_is_named_where_none_has_a_name(tmp_path, monkeypatch):
    count_steps(monkeypatch, edits=500, mistakes=800)
    counts = scores(drawn(SOLUTIONS["unnameable", "development"], 5), tmp_path)
    assert counts["with a clue"] == 0
