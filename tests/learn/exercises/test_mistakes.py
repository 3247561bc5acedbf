"""The grader names the mistakes of wrong solutions, and names no mistake that was not made."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from mistake_tables import FALSE, RIGHT, functions_of, mistakes_of, solutions_of

from npformer.learn.exercises import EXERCISES, grade
from npformer.learn.exercises.agreement import equal, results_of
from npformer.learn.exercises.mutants import with_mistakes

HERE = Path(__file__).parent
TABLES = sorted((HERE / "mistakes").glob("*.txt"))
HELD_OUT = HERE / "held_out" / "held_out.txt"  # written after the grader's mistakes, to measure it
SOLUTIONS = [solution for table in (*TABLES, HELD_OUT) for solution in solutions_of(table)]
ALL = list(EXERCISES)


def names(items):
    return [name for name, _ in items]


def judged(mistakes, folder):
    """Return the number of each score, and the clues that do not name the mistake."""
    scores, report = Counter(), []
    for mistake in mistakes:
        verdict = mistake.verdict(folder / f"{mistake.exercise}.py")
        score = mistake.score(verdict)
        scores[score] += 1
        if score != RIGHT:
            report.append(f"{score}: {mistake.exercise}: {mistake.line}: {verdict.message} {verdict.clues}")
    return scores, "\n".join(report)


def test_the_tables_hold_mistakes_of_every_exercise():
    mistakes = [mistake for table in TABLES for mistake in mistakes_of(table)]
    assert len(mistakes) >= 260
    assert len({(mistake.exercise, mistake.text) for mistake in mistakes}) == len(mistakes)
    assert {mistake.exercise for mistake in mistakes} == {exercise.name for exercise in ALL}


@pytest.mark.parametrize(("name", "solution"), SOLUTIONS, ids=names(SOLUTIONS))
def test_a_learners_solution_is_accepted(name, solution):
    verdict = grade(EXERCISES.find(name), functions_of(solution))
    assert verdict.solved, verdict


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_the_mistakes_are_named(table, tmp_path):
    scores, report = judged(mistakes_of(table), tmp_path)
    assert scores[RIGHT] >= 0.95 * scores.total(), report
    assert scores[FALSE] == 0, report


def test_a_false_name_is_rare_for_mistakes_that_the_grader_does_not_know(tmp_path):
    scores, report = judged(mistakes_of(HELD_OUT), tmp_path)
    assert scores.total() >= 40
    assert scores[RIGHT] >= 0.4 * scores.total(), report
    assert scores[FALSE] <= 0.05 * scores.total(), report


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.name)
def test_the_plain_solution_is_accepted(exercise):
    assert set(exercise.plain) == set(exercise.solution)
    verdict = grade(exercise, exercise.plain)
    assert verdict.solved, verdict


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.name)
def test_every_named_mistake_is_told_apart_from_the_others(exercise):
    """Each one changes the results, and mistakes with different names give different results."""

    def results(functions):
        with np.errstate(all="ignore"):
            try:
                return [results_of(trial, SimpleNamespace(**functions)) for trial in exercise.trials]
            except Exception:  # such a mistake is named by the exception
                return []

    def agree(one, other):
        return (
            bool(one)
            and bool(other)
            and all(
                a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
                for a, b in zip(one, other, strict=True)
            )
        )

    found = [("", results(exercise.plain))]
    for mistake in exercise.mistakes:
        result = results(with_mistakes(exercise.plain, [mistake]))
        alike = [says for says, other in found if says != mistake.says and agree(result, other)]
        assert not alike, f"{mistake.says} gives the same results as {alike[0] or 'the solution'}"
        found.append((mistake.says, result))
