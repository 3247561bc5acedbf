"""Tests of running cells: errors, replay, and the description of the variables that they define."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from npformer.learn.course.execute import Runner, defined, in_full, loop_names
from npformer.learn.course.lesson import Cell, Lesson
from npformer.nn.show import as_text

SOURCE = """\
# %%
x = [1]
print("first")

# %%
x.append(2)
import math

# %%


def fails():
    return math.sqrt("two")


fails()

# %%
raise SystemExit(3)
"""


@pytest.fixture
def runner(tmp_path):
    path = tmp_path / "09_short.py"
    path.write_text(SOURCE, encoding="utf-8")
    return Runner(Lesson(path))


def run(runner, step):
    return runner.run(runner.lesson.steps[step].code)


def test_a_cell_defines_variables_and_replay_restores_what_it_changed_in_place(runner):
    outcome = run(runner, 0)
    assert (outcome.printed, outcome.defined, outcome.error) == ("first\n", ["x list of 1"], "")
    run(runner, 1)
    assert runner.namespace["x"] == [1, 2]
    assert runner.replay(1) == ""
    assert runner.namespace["x"] == [1]
    assert "math" not in runner.namespace


def test_an_error_names_the_lessons_line_and_the_runner_stays_usable(runner):
    assert runner.replay(2) == ""
    error = run(runner, 2).error
    assert "TypeError: must be real number, not str" in error
    assert '09_short.py, line 13: return math.sqrt("two")' in error
    assert runner.evaluate("len(x)") == "2\n"
    assert "SystemExit 3" in run(runner, 3).error
    assert "TypeError" in runner.replay(4), "it stops at the first error"
    with pytest.raises(SystemExit):  # of SIGTERM
        runner.run(Cell("code", "raise SystemExit(143)", 1))


class Pair(NamedTuple):
    weights: Any
    scale: float


def test_definitions_are_described_by_shape():
    after = {
        "a": np.zeros((2, 3)),
        "ids": np.zeros(3, np.int64),
        "cache": Pair(np.ones(2), 0.5),
        "loss": np.float64(1 / 3),
        "yes": True,
        "caption": "a text",
        "old": 1,
        "_hidden": 2,
        "np": np,
        "exp": np.exp,
    }
    described = ["a (2, 3)", "ids (3,) int64", "cache Pair", "loss = 0.333333", "yes = True"]
    assert defined({"old": after["old"]}, after) == described
    assert in_full("Pair", Pair) == f"Pair type\n{Pair!r}"
    assert as_text(Pair) == f"type = {Pair!r}"
    assert loop_names("for i, (j, k) in x:\n    m = i") == {"i", "j", "k"}
