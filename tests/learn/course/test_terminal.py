"""The screens of a lesson in terminals of any size: no word is cut, and nothing scrolls away unread."""

import io
import re
import sys

from pseudo_terminal import COLUMNS, ROWS, Terminal, start, step_with

from npformer.learn.course.lesson import find_lesson
from npformer.learn.course.terminal import FoldedStream

__all__ = ["start"]  # a fixture


def test_output_is_broken_between_words(start):
    lesson = start("0.2")
    lesson.read()
    lesson.type(f"g {step_with('0.2', 'averaging_backward')}")
    printed = lesson.type()
    assert "(is it averaged instead of summed?)" in " ".join(printed.split())
    assert re.search(r"^ {10}\w", printed, re.MULTILINE)  # the rest of a broken line is indented
    assert max(map(len, printed.splitlines())) <= COLUMNS


def test_a_narrow_terminal(start):
    lesson = start("6", columns=60)
    first = lesson.read()
    assert "Lessons are written for 100 columns" in first
    third = lesson.type("g 3")
    assert third.strip().endswith("\n[3/6] Enter: the answer · b back · q quit · ? help ▸")
    assert max(map(len, third.splitlines())) <= 60


def test_a_progress_that_cannot_be_saved_is_reported(start, tmp_path):
    (tmp_path / "file").write_text("")
    lesson = start("0.2", XDG_STATE_HOME=str(tmp_path / "file"))
    assert "your progress cannot be saved in" in lesson.read()
    while "[2/" not in lesson.type():
        pass
    left = lesson.type("q", until="then g 2.")
    assert re.search(r"You stopped at step 2 of \d+, but your progress is not saved\.", left)
    assert lesson.close() == 0


def test_the_end_leads_to_the_exercises_and_to_the_next_lesson(start):
    lesson = start("1")
    lesson.read()
    lesson.type(f"g {len(find_lesson('1').steps)}")
    screen = ""
    while "Exercises of this chapter: npformer exercise list 1\n" not in screen:
        screen = lesson.type()
    assert "Next: npformer lesson 2 (Embeddings)" in screen
    assert lesson.close() == 0


def test_a_list_longer_than_the_screen_is_shown_in_pages(tmp_path):
    terminal = Terminal([sys.executable, "-m", "npformer", "exercise", "list"], tmp_path)
    first = terminal.read()
    assert "swish-backward" in first
    assert first.count("\n") < ROWS
    assert "swish-backward" not in terminal.type()
    terminal.type("q", until="\n")
    assert terminal.close() == 0


def test_what_a_cell_prints_is_text():
    stream = io.StringIO()
    folded = FoldedStream(stream, 80)
    folded.write("a\x1b[31m\tb\rc\n  d\u202e")
    folded.end()
    assert stream.getvalue() == "a\\x1b[31m\tb\\rc\n  d\\u202e\n"
