"""Tests of saving the progress in the lessons."""

import json

import pytest

from npformer.errors import UserError
from npformer.learn.course.progress import (
    LessonProgress,
    Saved,
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
