"""Tests of saving the progress in the lessons."""

import json

import pytest

from npformer.learn.course.progress import (
    LessonProgress,
    last_lesson,
    load_progress,
    save_progress,
    state_file,
)


@pytest.fixture
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "npformer" / "lessons.json"


def test_the_progress_is_saved(state):
    assert load_progress() == {}
    assert last_lesson() is None
    assert save_progress("05_x", LessonProgress(3, 20)) == ""
    assert save_progress("00_y", LessonProgress(0, 9, done=True)) == ""
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
def test_a_damaged_file_counts_as_empty(state, text):
    state.parent.mkdir(parents=True)
    state.write_bytes(text.encode(errors="surrogateescape"))
    assert load_progress() == {}
    assert last_lesson() is None
    assert save_progress("05_x", LessonProgress(1, 2)) == ""
    assert load_progress() == {"05_x": LessonProgress(1, 2)}


def test_a_progress_that_cannot_be_saved_is_reported(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert "cannot be saved" in save_progress("05_x", LessonProgress(1, 2))


def test_a_relative_state_home_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_file() == tmp_path / ".local" / "state" / "npformer" / "lessons.json"
