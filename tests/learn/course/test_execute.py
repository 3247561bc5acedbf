"""Running cells, describing the variables they define, saving the progress, and pictures in terminals."""

import base64
import json
import re
import sys
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.learn.course import show_figure
from npformer.learn.course.execute import Runner, defined, in_full, loop_names
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.progress import (
    LessonProgress,
    Saved,
    last_lesson,
    load_progress,
    save_progress,
    state_file,
)
from npformer.learn.course.terminal import escape_sequence, protocol
from npformer.plots import Figure, cell_grid

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


def test_a_cell_prints_and_defines_variables(runner):
    outcome = run(runner, 0)
    assert (outcome.printed, outcome.defined, outcome.error) == ("first\n", ["x list of 1"], "")


def test_replay_restores_values_that_a_cell_changed_in_place(runner):
    for step in (0, 1):
        run(runner, step)
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


def test_replay_stops_at_the_first_error(runner):
    assert "TypeError" in runner.replay(4)


def test_a_line_is_an_expression_or_a_statement(runner):
    assert runner.evaluate("1 + 1") == "2\n"
    assert runner.evaluate("y = 3") == ""
    assert runner.evaluate("y") == "3\n"
    assert runner.evaluate("'text'") == "text\n"
    assert "NameError" in runner.evaluate("nothing")
    assert "SyntaxError" in runner.evaluate("y = = 3")


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
    told = ["a (2, 3)", "ids (3,) int64", "cache Pair", "loss = 0.333333", "yes = True"]
    assert defined({"old": after["old"]}, after) == told
    assert loop_names("for i, (j, k) in x:\n    m = i") == {"i", "j", "k"}


def test_a_variable_is_printed_in_full():
    assert in_full("a", np.arange(3.0)) == "a (3,)\n[0. 1. 2.]"
    assert in_full("cache", Pair(np.ones(2), 0.5)).splitlines()[0] == "cache: Pair"
    assert "weights (2)" in in_full("cache", Pair(np.ones(2), 0.5))


@pytest.fixture
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "npformer" / "lessons.json"


def test_the_progress_is_saved(state):
    assert load_progress() == {}
    assert last_lesson() is None
    assert save_progress("05_x", LessonProgress(3, 20)) == Saved(True, "")
    assert save_progress("00_y", LessonProgress(0, 9, done=True)) == Saved(True, "")
    assert load_progress() == {"05_x": LessonProgress(3, 20), "00_y": LessonProgress(0, 9, done=True)}
    assert last_lesson() == "00_y"
    assert state_file() == state
    assert json.loads(state.read_text())["version"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"lessons": 3}',
        '{"lessons": {"05_x": {"step": "3"}}}',
        '{"lessons": {"05_x": [1]}}',
        "\udcff",
    ],
)
def test_a_damaged_file_counts_as_empty_and_is_kept(state, text):
    data = text.encode(errors="surrogateescape")
    state.parent.mkdir(parents=True)
    state.write_bytes(data)
    assert load_progress() == {}
    assert last_lesson() is None
    copy = state.with_name("lessons.json.damaged")
    note = f"{state} was damaged: a copy of it is {copy}" if data else ""
    assert save_progress("05_x", LessonProgress(1, 2)) == Saved(True, note)
    assert load_progress() == {"05_x": LessonProgress(1, 2)}
    assert (copy.read_bytes() if copy.exists() else b"") == data


def test_progress_of_a_newer_version_is_neither_read_nor_replaced(state):
    state.parent.mkdir(parents=True)
    state.write_text('{"version": 2, "lessons": []}')
    with pytest.raises(UserError, match=r"has version 2, .* install a newer npformer, or move the file away"):
        load_progress()
    saved = save_progress("05_x", LessonProgress(1, 2))
    assert not saved.done
    assert "your progress cannot be saved" in saved.note
    assert state.read_text() == '{"version": 2, "lessons": []}'


def test_a_progress_that_cannot_be_saved_is_reported(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    saved = save_progress("05_x", LessonProgress(1, 2))
    assert not saved.done
    assert "cannot be saved" in saved.note


def test_a_relative_state_home_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_file() == tmp_path / ".local" / "state" / "npformer" / "lessons.json"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-256color"}, ""),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ({"TERM": "tmux-256color", "TERM_PROGRAM": "iTerm.app"}, ""),
        ({"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x"}, ""),
        ({}, ""),
    ],
)
def test_which_terminals_show_pictures(environment, expected):
    assert protocol(environment) == expected


def test_the_escape_sequences_contain_the_picture():
    png = bytes(range(256)) * 40
    kitty = escape_sequence(png, "kitty")
    parts = re.findall(r"\033_G([^;]*);([^\033]*)\033\\", kitty)
    assert base64.b64decode("".join(data for _, data in parts)) == png
    assert [settings.split("m=")[1] for settings, _ in parts] == ["1"] * (len(parts) - 1) + ["0"]
    assert all(len(data) <= 4096 for _, data in parts)
    iterm = escape_sequence(png, "iterm2")
    assert iterm.startswith("\033]1337;File=inline=1;size=10240;")
    assert base64.b64decode(iterm.split(":")[1].split("\a")[0]) == png


def test_a_plain_script_saves_its_figures_and_names_them(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    figure = cell_grid(np.eye(2))
    assert isinstance(figure, Figure)
    show_figure(figure, "09_cells", "two cells")
    assert capsys.readouterr().out == "figure lesson_figures/09_cells.png: two cells\n"
    assert (tmp_path / "lesson_figures" / "09_cells.png").read_bytes().startswith(b"\x89PNG")


def test_a_notebook_displays_the_figure(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shown = []
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    display = types.SimpleNamespace(display=lambda data, raw: shown.append((data, raw)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    show_figure(cell_grid(np.eye(2)), "09_cells", "two cells")
    [(data, raw)] = shown
    assert raw
    assert data["image/png"].startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == []


def test_figures_that_cannot_be_saved_are_a_users_error(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lesson_figures").write_text("a file in the way")
    with pytest.raises(UserError, match="lesson_figures"):
        show_figure(cell_grid(np.eye(2)), "09_cells")
