"""The grader names the mistakes of wrong solutions, and names no mistake that was not made."""

from collections import Counter
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from mistake_tables import FALSE, RIGHT, count_steps, drawn, functions_of, mistakes_of, solutions_of

from npformer.learn.exercises import EXERCISES, grade
from npformer.learn.exercises.agreement import equal, results_of
from npformer.mistakes.mutants import with_mistakes

HERE = Path(__file__).parent
TABLES = sorted((HERE / "mistakes").glob("*.txt"))
HELD_OUT = sorted((HERE / "held_out").glob("*.txt"))  # written after the grader's mistakes, to measure it
SOLUTIONS = drawn((pair for table in (*TABLES, HELD_OUT[0]) for pair in solutions_of(table)), 3)
ALL = list(EXERCISES)


@pytest.fixture(autouse=True)
def _the_same_on_every_machine(monkeypatch):
    count_steps(monkeypatch, edits=500, mistakes=800)


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


@pytest.mark.parametrize(("name", "solution"), SOLUTIONS, ids=[name for name, _ in SOLUTIONS])
def test_a_learners_solution_is_accepted(name, solution):
    verdict = grade(EXERCISES.find(name), functions_of(solution))
    assert verdict.solved, verdict


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_the_mistakes_are_named(table, tmp_path):
    """By day, a tenth of the mistakes in each exercise stand for all of them."""
    of_exercises = groupby(mistakes_of(table), lambda mistake: mistake.exercise)
    scores, report = judged((m for _, mistakes in of_exercises for m in drawn(mistakes, 10)), tmp_path)
    assert scores[RIGHT] >= 0.95 * scores.total(), report
    assert scores[FALSE] == 0, report


def test_a_false_name_is_rare_for_mistakes_that_the_grader_does_not_know(tmp_path):
    mistakes = [mistake for table in HELD_OUT for mistake in mistakes_of(table)]
    assert len(mistakes) >= 80
    scores, report = judged(drawn(mistakes, 5), tmp_path)
    assert scores[RIGHT] >= 0.5 * scores.total(), report
    assert scores[FALSE] <= 0.05 * scores.total(), report


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.name)
def test_every_special_mistake_is_told_apart_from_the_others(exercise):
    """Each one changes the results, and mistakes with different names give different results."""

    def results(functions):
        with np.errstate(all="ignore"):
            try:
                return [results_of(trial, SimpleNamespace(**functions)) for trial in exercise.trials]
            except Exception:  # such a mistake is named by the exception
                return []

    def agree(one, other):
        return bool(one and other) and all(
            a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
            for a, b in zip(one, other, strict=True)
        )

    found = [("", results(exercise.plain))]
    for mistake in exercise.special_mistakes:
        result = results(with_mistakes(exercise.plain, [mistake]))
        alike = [says for says, other in found if says != mistake.says and agree(result, other)]
        assert not alike, f"{mistake.says} gives the same results as {alike[0] or 'the solution'}"
        found.append((mistake.says, result))


OWN_ADAM = """
def adam_step(adam, lr):
    b1, b2 = adam.betas
    adam.t += 1
    adam.m[...] = b1 * adam.m + (1 - b1) * adam.model.grads
    adam.v[...] = b2 * adam.v + (1 - b2) * adam.model.grads ** 2
    m_hat = adam.m / (1 - b1 ** adam.t)
    v_hat = adam.v
    adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps)
"""


def clue_to(text, name, file):
    file.write_text(text, encoding="utf-8")
    return " ".join(grade(EXERCISES.find(name), functions_of(text, str(file)), str(file)).clues)


OWN_SOFTMAX = """
def softmax_backward(dy, cache):
    p = cache
    row = (dy * p).sum(0, keepdims=True)
    return p * (dy - row)
"""
OWN_EMBEDDING = """
def embedding_backward(dy, cache):
    ids, table, scale, zero_id = cache
    g = np.zeros_like(table)
    if zero_id is not None:
        dy = np.where((ids == zero_id)[..., None], 0, dy)
    np.add.at(g, ids, dy)
    return g
"""
OWN_ACCEPT = EXERCISES.find("accept").code.replace("np.maximum(p[i] - q[i], 0)", "p[i]")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("softmax-backward", OWN_SOFTMAX, "line 4 computes row"),
        ("adam-step", OWN_ADAM.replace("v_hat", "second"), "line 9 changes adam.model.values"),
        ("embedding-backward", OWN_EMBEDDING, "line 7"),
        ("accept", OWN_ACCEPT, ""),  # no line that was given
    ],
)
def test_a_message_names_the_line_that_computes_a_number_of_the_mistake(name, text, line, tmp_path):
    clue = clue_to(text, name, tmp_path / "own.py")
    assert f"({line} in your file)" in clue if line else clue.endswith("stays too rare")


def test_two_mistakes_are_both_named():
    text = OWN_ADAM.replace("np.sqrt(v_hat) + adam.eps", "np.sqrt(v_hat + adam.eps)")
    (clue,) = grade(EXERCISES.find("adam-step"), functions_of(text)).clues
    assert "bias correction of v" in clue
    assert "eps is added to v under the square root" in clue


def test_a_number_of_the_learners_code_is_named(tmp_path):
    text = EXERCISES.find("sinusoids").code.replace("10000", "5000") + "\nHUGE = 10**400\n"
    assert clue_to(text, "sinusoids", tmp_path / "own.py").startswith("the base is 5000 instead of 10000")
