"""Tests of saving the progress in the lessons."""

import json

import pytest
from course import CHAPTERS, LESSONS

from npformer.learn.course import progress as progress_module
from npformer.learn.course.chapters import SPLIT_LESSONS, TITLES
from npformer.learn.course.progress import (
    LessonProgress,
    Saved,
    last_lesson,
    load_progress,
    save_progress,
    state_file,
)


@pytest.fixture
def state(inside):
    return inside / "state" / "npformer" / "lessons.json"


def test_the_progress_is_saved(state):
    assert load_progress() == {}
    assert last_lesson() is None
    assert save_progress("05_x", LessonProgress(3, 20)) == Saved(True, "")
    assert save_progress("00_y", LessonProgress(0, 9, done=True)) == Saved(True, "")
    assert load_progress() == {"05_x": LessonProgress(3, 20), "00_y": LessonProgress(0, 9, done=True)}
    assert last_lesson() == "00_y"
    assert state_file() == state
    assert json.loads(state.read_text())["version"] == 1


STRINGS = b'{"lessons": {"05_x": {"step": "3"}}}'  # where numbers should be
LISTS = b'{"lessons": {"05_x": [1]}}'


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"lessons": 3}', STRINGS, LISTS, b"\xff"])
def test_a_damaged_file_counts_as_empty_and_is_kept(state, data):
    state.parent.mkdir(parents=True)
    state.write_bytes(data)
    assert load_progress() == {}
    assert last_lesson() is None
    copy = state.with_name("lessons.json.damaged")
    note = f"{state} was damaged: a copy of it is {copy}" if data else ""
    assert save_progress("05_x", LessonProgress(1, 2)) == Saved(True, note)
    assert load_progress() == {"05_x": LessonProgress(1, 2)}
    assert (copy.read_bytes() if copy.exists() else b"") == data


# ---------------------------------------------------------------------------------------------------------
# Lessons that were split

PARTS = ("70_1_x", "70_2_y", "70_3_z")


@pytest.fixture
def old_file(state, monkeypatch):
    """Return a function that writes the file of a version in which 70_old and 71_old were lessons."""
    monkeypatch.setattr(progress_module, "NEW_NAMES", {"70_old": PARTS, "71_old": ("71_2_new",)})

    def write(lessons, last="05_x", damaged=""):
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text(json.dumps({"version": 1, "last": last, "lessons": lessons}) + damaged)
        return state

    return write


def place(step, steps, done=False):
    return {"step": step, "steps": steps, "done": done}


@pytest.mark.parametrize(
    ("old", "done", "opened"),
    [
        (place(0, 30), (), "70_1_x"),
        (place(9, 30), (), "70_1_x"),
        (place(10, 30), PARTS[:1], "70_2_y"),
        (place(29, 30), PARTS[:2], "70_3_z"),
        (place(0, 30, done=True), PARTS, "70_3_z"),
        (place(12, 30, done=True), PARTS, "70_2_y"),
        (place(30, 30), (), "70_1_x"),
        (place(0, 0), (), "70_1_x"),
    ],
)
def test_the_parts_of_a_lesson_that_was_split_are_done_as_far_as_it_was_read(old, done, opened, old_file):
    renamed = place(4, 20, done=True)  # a lesson that only got another name keeps its step
    old_file({"70_old": old, "05_x": place(1, 2), "71_old": renamed}, last="70_old")
    kept = {"05_x": LessonProgress(1, 2), "71_2_new": LessonProgress(4, 20, done=True)}
    assert load_progress() == kept | {part: LessonProgress(done=True) for part in done}
    assert last_lesson() == opened


def test_each_lesson_that_was_split_became_a_whole_chapter():
    assert list(CHAPTERS) == list(TITLES)
    assert all(old not in {lesson.name for lesson in LESSONS} for old in SPLIT_LESSONS)
    became = progress_module._split_lessons()
    assert became["00_forward_and_backward"] == ("00_2_forward_and_backward", "00_3_measured_derivatives")
    assert became["01_words_to_ids"] == tuple(lesson.name for lesson in CHAPTERS[1])
    assert became["02_embeddings"] == tuple(lesson.name for lesson in CHAPTERS[2])
    assert became["03_positions"] == tuple(lesson.name for lesson in CHAPTERS[3])
    assert became["13_learning"] == tuple(lesson.name for lesson in CHAPTERS[13])
    assert became["15_what_attention_learned"] == tuple(lesson.name for lesson in CHAPTERS[15])[:4]
    assert [len(became[old]) for old in SPLIT_LESSONS[:4]] == [6, 3, 4, 4]


def test_a_relative_state_home_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_file() == tmp_path / ".local" / "state" / "npformer" / "lessons.json"
