"""The screens of terminals of any size: no word is cut, and nothing scrolls away unread."""

import io
import re

from rich.cells import cell_len
from typing_reader import COLUMNS, ROWS, step_with

from npformer.cli.main import main
from npformer.learn.course.lesson import find_lesson
from npformer.learn.course.terminal import FoldedStream


def test_output_is_broken_between_words(screens):
    *_, printed, _ = screens("lesson", "0.2", typed=[step_with("0.2", "averaging_backward"), "", "q"])
    assert "(is it averaged instead of summed?)" in " ".join(printed.split())
    assert re.search(r"^ {10}\w", printed, re.MULTILINE)  # the rest of a broken line is indented
    assert max(map(len, printed.splitlines())) <= COLUMNS


def test_a_narrow_terminal(screens):
    first, fifth, _ = screens("lesson", "6.1", typed=["g 5", "q"], columns=60)
    assert "Lessons are written for 100 columns" in first
    assert fifth.strip().endswith("\n[5/10] Enter: more · b back · q quit · ? help ▸")
    assert max(map(len, fifth.splitlines())) <= 60


def test_a_low_terminal(screens):
    for rows in (6, 12, 13, 14):
        shown = screens("lesson", "6", typed=["", "", "q"], columns=80, LINES=str(rows))
        assert shown[1].count("\n") > 2, "there is text above the question"
        assert rows < 12 or max(screen.count("\n") for screen in shown) < rows, "nothing scrolls away"


def test_a_progress_that_cannot_be_saved_is_reported(screens, tmp_path):
    (tmp_path / "file").write_text("")
    first, *_, left = screens("lesson", "0.2", typed=["g 2", "q"], XDG_STATE_HOME=str(tmp_path / "file"))
    assert "your progress cannot be saved in" in first
    stopped = "You stopped at step 2 of 16. Your progress is not saved. To go on: "
    assert f"{stopped}npformer lesson 0.2, g 2" in " ".join(left.split())


def test_a_lesson_in_chinese_breaks_between_characters(screens):
    first, third, _ = screens("lesson", "0.0", "--language", "zh", typed=["g 3", "q"])
    assert "学完这一课，你能够" in first
    assert "Enter：运行 · b 后退" in first
    lines = third.splitlines()
    assert max(map(cell_len, lines)) <= COLUMNS
    assert any(cell_len(line) >= COLUMNS - 2 and not line.endswith("，") for line in lines)
    assert not [line for line in lines if line.startswith(("，", "。", "；", "：", "）"))]
    narrow, _ = screens("lesson", "0.0", "--language", "zh", typed=["q"], columns=45)
    assert cell_len(narrow.splitlines()[-1]) <= 45, "the question fits on one line"


def test_the_language_of_the_environment_and_an_unknown_one(screens, capsys):
    assert "学完这一课" in screens("lesson", "0.0", typed=["q"], LC_ALL="zh_CN.UTF-8")[0]
    assert main(["lesson", "0.0", "--language", "fr"]) == 2
    assert "npformer does not speak the language 'fr': choose en or zh" in capsys.readouterr().err


def test_the_end_leads_to_the_exercises_and_to_the_next_lesson(screens):
    *_, end = screens("lesson", "3", typed=[f"g {len(find_lesson('3').steps)}"])
    assert "Exercises of this chapter: npformer exercise list 3\n" in end
    assert "Next on the main route: npformer lesson 4.1 (Attention without parameters)" in end


def test_the_end_names_the_next_of_each_route_and_of_all_lessons(screens):
    *_, end = screens("lesson", "5.2", typed=[f"g {len(find_lesson('5.2').steps)}"])
    assert "Next on the main route: npformer lesson 6.1 (" in end
    assert "Next on the route for engineers: npformer lesson 6.1 (" in end
    assert "Next of all lessons: npformer lesson 5.3 (" in end


def test_a_list_longer_than_the_screen_is_shown_in_pages(screens):
    first, second, _ = screens("exercise", "list", typed=["", "q"])
    assert "swish-backward" in first
    assert first.count("\n") < ROWS
    assert "swish-backward" not in second


def test_what_a_cell_prints_is_text():
    stream = io.StringIO()
    folded = FoldedStream(stream, 80)
    folded.write("a\x1b[31m\tb\rc\n  d\u202e")
    folded.end()
    assert stream.getvalue() == "a\\x1b[31m\tb\\rc\n  d\\u202e\n"
