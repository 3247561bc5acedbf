"""One submitted solution: its points, its diagnosis, and what it can do to the grader."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from classroom_solutions import RIGHT, UNTOUCHED, WRONG, solution

from npformer.errors import UserError
from npformer.learn.classroom.assess import MISSING, SOLVED, assess, is_untouched
from npformer.learn.classroom.assess import WRONG as MISTAKEN
from npformer.learn.classroom.assignment import Assignment, assignment_from, chosen_exercises
from npformer.learn.classroom.cells import defines
from npformer.learn.classroom.copied import own_function_of_package
from npformer.learn.classroom.worker import result_from
from npformer.learn.exercises import EXERCISES, grade
from npformer.learn.exercises.agreement import equal, results_of
from npformer.learn.exercises.exercise import HIDDEN, SEED

NAME = "softmax-backward"
ASSIGNMENT = Assignment((NAME,), seed=5, seconds=2)


def test_a_wrong_solution_has_none_and_a_diagnosis():
    result = assess(ASSIGNMENT, NAME, WRONG)
    assert (result.status, result.points) == (MISTAKEN, 0)
    assert re.match(r"\d+ of 20 entries are wrong, first dx\[0, 0\]", result.message)
    assert result.clues
    assert "too large" in result.picture
    assert result.message in result.as_text()
    chinese = assess(replace(ASSIGNMENT, language="zh_CN"), NAME, WRONG)
    assert "个元素中有" in chinese.message
    assert "偏大" in chinese.picture


def test_messages_do_not_show_the_temporary_folder():
    result = assess(ASSIGNMENT, NAME, "print(__file__)\nopen(__file__ + '/x')\n")
    assert result.message.startswith("line 2 raised")
    assert "npformer-" not in result.as_text()


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_an_untouched_stub_is_recognized_and_its_solution_is_right(exercise):
    solved = solution(exercise.name)
    released = re.sub(
        r"### BEGIN SOLUTION.*?### END SOLUTION",
        "# YOUR CODE HERE\n    raise NotImplementedError()",
        solved,
        flags=re.DOTALL,
    )
    earlier = exercise.stub.replace(
        "from npformer import functional as F", "from npformer.functional import relu"
    )
    for text in (exercise.stub, exercise.file_text(), released, earlier, "", "# nothing\n"):
        assert is_untouched(exercise, text)
    assert not is_untouched(exercise, solved)
    assert not is_untouched(exercise, "x = (")
    namespace = {}
    exec(compile(solved, exercise.name, "exec"), namespace)
    assert grade(exercise.with_hidden_trials(3), namespace).solved
    assert not own_function_of_package(exercise, solved)
    assert not own_function_of_package(exercise, exercise.stub)


DEEP = {
    "a sum": "1" + " + 1" * 2500,
    "attributes": "lambda a: a" + ".real" * 2500,
    "calls": "lambda a: a" + "()" * 2500,
    "indices": "lambda a: a" + "[0]" * 2500,
    "signs": "-" * 1500 + "1",
    "conditions": "1 if 0 else " * 900 + "1",
    "functions": "lambda: " * 900 + "1",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_expressions_are_read_or_left_alone(name):
    exercise = EXERCISES.find(NAME)
    text = RIGHT + f"z = {DEEP[name]}\n"
    assert not is_untouched(exercise, text)
    assert not own_function_of_package(exercise, text)
    assert defines(text, exercise.functions)


# ---------------------------------------------------------------------------------------------------------
# Hidden trials


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_hidden_trials_have_other_inputs(exercise):
    """Results of the package differ from those of the public trials, for at least one trial."""
    assert all(trial.seed == SEED for trial in exercise.trials)
    hidden = exercise.with_hidden_trials(5).trials[len(exercise.trials) :]
    assert [trial.seed for trial in hidden] == [5] * len(exercise.trials)
    assert all(HIDDEN in trial.label for trial in hidden)
    package = SimpleNamespace(**exercise.solution)
    pairs = [
        (results_of(public, package), results_of(other, package))
        for public, other in zip(exercise.trials, hidden, strict=True)
    ]
    assert any(a.keys() != b.keys() or any(not equal(a[k], b[k]) for k in a) for a, b in pairs)


def test_a_solution_that_knows_the_public_inputs_fails_the_hidden_trials():
    known = []

    def noting(dy, cache):
        known.append(float(dy.flat[0]))
        return cache * (dy - (dy * cache).sum(-1, keepdims=True))

    exercise = EXERCISES.find(NAME)
    assert grade(exercise, {"softmax_backward": noting}).solved
    lines = f"    y = cache\n    if float(dy.flat[0]) not in {known}:\n        return dy\n"
    text = RIGHT.replace("    y = cache\n", lines) + f"z = {DEEP['a sum']}\n"
    public = replace(ASSIGNMENT, seed=None)
    assert assess(public, NAME, text).status == SOLVED
    result = assess(ASSIGNMENT, NAME, text)
    assert result.status == MISTAKEN
    assert HIDDEN in result.message


# ---------------------------------------------------------------------------------------------------------
# Copies, and settings


@pytest.mark.parametrize(
    "text",
    [
        "from npformer.functional import softmax_backward",
        "from npformer.functional.softmax import softmax_backward as s\nsoftmax_backward = s",
        "from npformer import functional as G\n\nsoftmax_backward = lambda dy, y: G.softmax_backward(dy, y)",
        "import npformer.functional\n\nf = npformer.functional.softmax_backward",
        "from npformer.learn.exercises import EXERCISES",
        "import npformer.learn.exercises as e",
    ],
)
def test_the_use_of_the_packages_own_function_is_noted(text):
    assert re.match(r"line \d uses npformer's own", own_function_of_package(EXERCISES.find(NAME), text))


def test_the_module_of_a_stubs_caches_is_no_solution_but_its_functions_are():
    exercise, module = EXERCISES.find("residual"), "npformer.learn.exercises.sublayer"
    assert not own_function_of_package(exercise, f"from {module} import PostNormCache")
    assert "npformer's own pre_norm:" in own_function_of_package(exercise, f"from {module} import pre_norm")


def test_exercises_are_chosen_by_name_and_by_chapter():
    assert chosen_exercises(["attention", "softmax"]) == ("softmax", "attention")
    chapter = ("softmax", "softmax-backward", "attention", "attention-backward")
    assert chosen_exercises(["5", "softmax"]) == chapter
    assert len(chosen_exercises([])) == len(EXERCISES)
    with pytest.raises(UserError, match="chapter 16 has no exercises"):
        chosen_exercises(["16"])


def test_an_assignment_survives_its_settings():
    assert assignment_from(ASSIGNMENT.as_settings(), "x") == ASSIGNMENT
    settings = ASSIGNMENT.as_settings()
    for damaged in ([], {}, settings | {"seed": "5"}, settings | {"exercises": ["x"]}):
        with pytest.raises(UserError):
            assignment_from(damaged, "the file")


def test_a_result_that_is_none_is_refused():
    result = assess(ASSIGNMENT, NAME, UNTOUCHED)
    good = result.as_settings()
    assert result_from(good) == result
    for damaged in (None, [], good | {"status": "x"}, good | {"points": "1"}, good | {"more": 1}):
        assert result_from(damaged) is None
    assert result_from(good | {"status": MISSING}) is not None
