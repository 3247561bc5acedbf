"""The grader repairs the learner's own code, and names the line and the kind of the mistake."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from mistake_tables import count_steps, drawn, functions_of, mistakes_of

from npformer.checking.repair import edits
from npformer.learn.exercises import EXERCISES, grade, judge
from npformer.learn.exercises.observe import observe
from npformer.learn.exercises.repair.own_code import TooManySteps, limited
from npformer.learn.exercises.repair.results import repair
from npformer.learn.exercises.time_limit import TimeLimit

RIGHT = "    return d @ k, d.swapaxes(-1, -2) @ q"
SIMILARITY = "def dot_similarity_backward(d, cache):\n    q, k = cache\n"
MISTAKES = drawn(mistakes_of(Path(__file__).parent / "repairs.txt"), 3)


@pytest.fixture(autouse=True)
def _the_same_on_every_machine(monkeypatch):
    count_steps(monkeypatch)


def repaired(name, text, folder):
    """Return what the repair of a solution says."""
    file = folder / "own.py"
    file.write_text(text, encoding="utf-8")
    return repair(EXERCISES.find(name), functions_of(text, str(file)), str(file))


def graded(name, text, folder):
    file = folder / "own.py"
    file.write_text(text, encoding="utf-8")
    return grade(EXERCISES.find(name), functions_of(text, str(file)), str(file))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.line[:40])
def test_a_repair_names_the_line_and_the_kind_of_the_mistake(mistake, tmp_path):
    says = repaired(mistake.exercise, mistake.text, tmp_path)
    assert re.search(mistake.names, says), says
    assert "all results are right)" in says


def test_right_solutions_and_untouched_files_are_not_repaired(tmp_path):
    assert repaired("dot-similarity-backward", SIMILARITY + RIGHT, tmp_path) == ""
    exercise = EXERCISES.find("dot-similarity-backward")
    assert repaired("dot-similarity-backward", exercise.file_text(), tmp_path) == ""
    assert not graded("dot-similarity-backward", exercise.file_text(), tmp_path).solved


def test_a_solution_that_no_change_repairs_gets_no_name(tmp_path):
    assert (
        repaired("dot-similarity-backward", "def dot_similarity_backward(d, cache):\n    return 1", tmp_path)
        == ""
    )


def test_lambdas_beside_the_solution_do_not_hinder_a_repair(tmp_path):
    text = (
        "double, half = lambda x: 2 * x, lambda x: x / 2\n"
        + SIMILARITY
        + "    return d @ q, d.swapaxes(-1, -2) @ q"
    )
    assert repaired("dot-similarity-backward", text, tmp_path).startswith("line 4: q is used instead of k")


def test_the_verdict_on_an_exception_names_the_repair(tmp_path):
    text = SIMILARITY + "    return d @ k, d.T @ q"
    verdict = graded("dot-similarity-backward", text, tmp_path)
    assert verdict.message.startswith("line 3 raised ValueError")
    assert [clue.partition(" (")[0] for clue in verdict.clues] == [
        "line 3: .T reverses all axes of d, and only the last two must be exchanged"
    ]


def test_a_variable_that_is_none_is_named(tmp_path):
    text = "def dropout_backward(dy, mask):\n    other = None\n    return dy * mask"
    assert graded("dropout-backward", text, tmp_path).clues == [
        "mask is None in this trial, and this case is not treated"
    ]


def test_an_attribute_that_is_none_is_named(tmp_path):
    text = (
        "def decoder_backward(layer, dy, cache):\n"
        "    dy = layer.norm.backward(dy, cache.norm)\n    total = 0\n"
        "    for one, c in zip(layer.layers[::-1], cache.layers[::-1]):\n"
        "        dy, dmemory = one.backward(dy, c)\n        total = total + dmemory\n    return dy, total\n"
    )
    (clue, *_) = graded("decoder-backward", text, tmp_path).clues
    assert clue == "layer.norm is None in this trial, and this case is not treated"


def test_the_only_wrong_result_is_named_if_nothing_else_is_known():
    text = (
        "def local_mask(length, width):\n"
        "    mask = np.abs(np.subtract.outer(np.arange(length), np.arange(length))) <= width\n"
        "    return mask & (np.arange(length) != 3) if length == 7 and width == 2 else mask\n"
    )
    (clue,) = grade(
        EXERCISES.find("local-mask"), functions_of(text)
    ).clues  # without a file there is no repair
    assert clue.startswith("only local_mask(7, 2) is wrong: the other ")


def test_a_change_that_never_ends_is_stopped(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def swish_backward(dy, cache):\n    while True:\n        pass\n", encoding="utf-8")
    functions = functions_of(file.read_text(encoding="utf-8"), str(file))
    with pytest.raises(TooManySteps), limited(str(file), TimeLimit(1000)):
        functions["swish_backward"](1, 2)


@pytest.mark.parametrize("looks", range(1, 13))
def test_a_limit_that_is_over_in_a_finalizer_ends_the_function(looks, tmp_path):
    """Python drops an exception that is raised in a finalizer, and ends the tracing that raised it."""
    file = tmp_path / "own.py"
    text = "def swish_backward(make, cache):\n    for _ in range(9):\n        make()\n"  # finalized at once
    file.write_text(text, encoding="utf-8")
    left = iter(range(looks))
    limit = SimpleNamespace(is_over=lambda: next(left, None) is None)

    class Finalized:
        def __del__(self):
            pass

    with pytest.raises(TooManySteps), limited(str(file), limit):
        functions_of(text, str(file))["swish_backward"](Finalized, None)


def test_a_list_is_not_appended_to_itself(tmp_path):
    """np.array(rows) would take minutes and gigabytes."""
    file = tmp_path / "own.py"
    text = "def pad(rows):\n    rows = []\n    p = rows\n    rows.append(p)\n    return np.array(rows)\n"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TooManySteps), limited(str(file), TimeLimit(1000)):
        functions_of(text.replace("np.array(rows)", "len(rows)"), str(file))["pad"]([])


def test_the_search_ends_when_its_time_is_over(tmp_path):
    file = tmp_path / "own.py"
    text = "def swish_backward(dy, cache):\n    for _ in range(100):\n        dy = dy + 1\n"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TooManySteps), limited(str(file), TimeLimit(0)):
        functions_of(text, str(file))["swish_backward"](1, 2)


def test_the_child_cannot_answer_with_a_repair_instead_of_results():
    exercise = EXERCISES.find("dot-similarity-backward")
    observations = [*observe(exercise, exercise.plain)]
    assert judge(exercise, [*observations, {"repair": "line 1: x\nis wrong"}]).solved
    assert judge(exercise, [{"repair": "line 1: x"}]) is None


FACTOR_TOO_EARLY = """
def cross_entropy_backward(dloss, cache):
    log_probs, targets, real, smoothing, shape, tokens = cache
    d = (np.exp(log_probs) - smoothing / shape[-1]) * real[:, None]
    d[np.arange(len(targets)), targets] -= 1 - smoothing
    return (d * (dloss / tokens)).reshape(shape)
"""


@pytest.mark.parametrize(("by_chance", "is_told"), [((), True), ((edits.OTHER_VARIABLES,), False)])
def test_a_change_that_makes_some_results_right_is_told_unless_it_may_be_chance(
    by_chance, is_told, tmp_path, monkeypatch
):
    """The trial without smoothing is right if `real` is subtracted instead of 1 - smoothing."""
    monkeypatch.setattr(edits, "KINDS", (edits.OTHER_VARIABLES,))
    monkeypatch.setattr(edits, "RIGHT_BY_CHANCE", by_chance)
    says = repaired("cross-entropy-backward", FACTOR_TOO_EARLY, tmp_path)
    assert ("the first wrong results are right, and others are still wrong" in says) == is_told


def test_the_prints_of_changed_code_are_not_shown(tmp_path, capsys):
    text = SIMILARITY + "    print('again')\n    return d @ q, d @ k"
    repaired("dot-similarity-backward", text, tmp_path)
    assert capsys.readouterr().out == ""
