"""What the screens of a lesson hold, whatever the terminal: nothing cut in a word, nothing out of sight."""

import sys

from pseudo_terminal import COLUMNS, ROWS, Terminal, start

__all__ = ["start"]  # a fixture


def test_what_a_cell_prints_is_broken_between_words(start):
    lesson = start("0")
    lesson.read()
    lesson.type("g 20")
    printed = lesson.type()
    assert "(averaged\n          where it should be summed?)\n" in printed
    assert max(map(len, printed.splitlines())) <= COLUMNS


def test_a_narrow_terminal(start):
    lesson = start("6", columns=60)
    first = lesson.read()
    assert "Lessons are laid out for 100 columns" in first
    third = lesson.type("g 3")
    assert third.strip().endswith("\n[3/23] Enter: run · ? help ▸"), "the question has one line"
    assert max(map(len, third.splitlines())) <= 60


def test_a_place_that_cannot_be_kept_is_told(start, tmp_path):
    (tmp_path / "file").write_text("")
    lesson = start("0", XDG_STATE_HOME=str(tmp_path / "file"))
    assert "your place cannot be kept in" in lesson.read()
    lesson.type()
    assert "Left at step 2 of 21, which is not kept: npformer lesson 0, and there g 2, goes on." in (
        lesson.type("q", until="goes on.")
    )
    assert lesson.close() == 0


def test_the_end_leads_to_the_exercises_and_to_the_next_lesson(start):
    lesson = start("1")
    lesson.read()
    lesson.type("g 23")
    screen = ""
    while "Go on:" not in screen:
        screen = lesson.type()
    assert "Try it yourself: npformer exercise list 1\n" in screen
    assert "Go on: npformer lesson 2 (Embeddings)" in screen
    assert lesson.close() == 0


def test_a_list_longer_than_the_screen_comes_in_pages(tmp_path):
    terminal = Terminal([sys.executable, "-m", "npformer", "exercise", "list"], tmp_path)
    first = terminal.read()
    assert "swish-backward" in first
    assert first.count("\n") < ROWS
    assert "swish-backward" not in terminal.type()
    terminal.type("q", until="\n")
    assert terminal.close() == 0
