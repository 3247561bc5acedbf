"""Going through a lesson in a terminal of 100 × 30, as a learner does."""

import pytest
from pseudo_terminal import MARK
from typing_reader import step_with, without_colours

from npformer.cli.main import main
from npformer.learn.course.progress import LessonProgress, load_progress, save_progress

TALK = [  # what is typed in lesson 0.2, and what then appears
    ("", "→ rng Generator"),
    ("g 3", "[3/16] Enter: run"),  # behind two pictures
    ("", "[-0.70373524 -1.26542147 -0.62327446  0.04132598]"),
    ("l", "[4/16] Enter: run"),
    ("s x", "x (2, 3, 4)\n[[[ 0.1257"),
    ("s x.T.mean.of", "x.T.mean has no of: it has no named fields"),
    ("s linear", "linear()\n<function linear"),  # imported
    ("s", "x (2, 3, 4)"),
    ("s xx", "did you mean x?"),
    ("!x.T.shape", "(4, 3, 2)\n"),
    ("!x[:] = 0; print('zeroed')", "zeroed\n"),
    ("!w", "NameError: name 'w' is not defined"),
    ("s w", "w is defined by the code on the screen: press Enter first"),
    ("!odd = type('Odd', (), {'__repr__': lambda self: 1 / 0})()", ""),
    ("s odd", "ZeroDivisionError: division by zero"),
    ("what", "'what' is not a command"),
    ("npformer exercise list", "This is a command for the shell"),
    ("g", "from 1 to 16"),
    (f"g {'9' * 5000}", "from 1 to 16"),  # more digits than Python reads
    ("?", "back one step"),
    ("c", "There is no folded code"),
    ("b", "[3/16] Enter: run"),
    ("l", "[3/16] Enter: run"),
    ("B", "[2/16] Enter: run"),
    ("b", "[1/16] Enter: run"),  # the first step is a step like any other
    ("o", "No figure was drawn yet."),
    ("", "[2/16] Enter: run"),
    ("!x", "NameError"),
    ("g 4", "[4/16] Enter: run"),
    ("!x[0, 0, 0]", "0.12573"),  # what ! changed is as the lesson left it
    ("g 1", "[1/16] Enter: run"),
    ("b", "[1/16] Enter: run"),
    ("g 3", "[3/16] Enter: run"),
    ("q", "You stopped at step 3 of 16.\nTo go on from there: npformer lesson 0.2"),
]
BROKEN = """\
# %% [markdown]
# # 90 · Broken
# %%
x = 1
# %%
x / 0
# %%
import time
print("waiting")
time.sleep(600)
# %% [markdown]
# The last words.
"""
OWN_LESSON = (  # in a new process, which the fixture `course` does not change
    "import sys, pathlib; from npformer.learn.course import lesson; "
    "from npformer.cli.main import main; "
    "lesson.CHECKOUT = pathlib.Path('lessons'); sys.exit(main(['lesson', '90']))"
)


def test_every_command(screens):
    shown = screens("lesson", "0.2", typed=[line for line, _ in TALK], colours=True)
    assert "\033[1m" in shown[0], "code is highlighted"
    first, *others = map(without_colours, shown)
    assert "After this lesson you can" in first
    assert "**" not in first, "prose is rendered"
    assert "Enter: run · b back · s NAME · !LINE · q quit · ? help" in first
    for (typed, expected), screen in zip(TALK, others, strict=True):
        assert expected in screen, typed
    assert load_progress()["00_2_forward_and_backward"].step == 2


def test_the_progress_is_saved_until_restart(screens):
    *_, stopped = screens("lesson", "0.2", typed=["g 4", EOFError()])
    assert "You stopped at step 4" in stopped
    for leaving in ("!quit()", "!exit()", "!import sys; sys.exit(1)"):
        assert "You stopped at step 4" in screens("lesson", typed=[leaving])[-1]
    again, value, stopped = screens("lesson", typed=["!x.shape", KeyboardInterrupt()])
    assert "You go on at step 4" in again
    assert "The code before this step runs again." in again
    assert "(2, 3, 4)" in value
    assert "You stopped at step 4" in stopped
    first, second, _ = screens("lesson", "0.2", "--restart", typed=["b", "q"])
    assert "runs again" not in first
    assert "[1/16] Enter: run" in second


def test_saved_progress_beyond_the_end_of_a_shorter_lesson_is_its_end(screens):
    save_progress("00_2_forward_and_backward", LessonProgress(400, 500))
    first, _ = screens("lesson", "0.2", typed=["q"])
    assert "You go on at step 16" in first
    assert "[16/16] Enter: " in first


def test_the_commands_are_named_as_the_reader_has_to_type_them(screens, folded, monkeypatch):
    monkeypatch.setattr("npformer.cli.own_command.own_command", lambda: ".venv/bin/npformer")
    assert "To go on from there: .venv/bin/npformer lesson 90\n" in screens("lesson", "90", typed=["q"])[-1]
    assert ".venv/bin/npformer exercise (write functions)" in "".join(screens("lessons"))


def test_answers_and_tagged_cells_are_folded_until_the_reader_asks(screens, folded):
    first, answer, second, shown, end = screens("lesson", "90", typed=["", "", "c"])
    assert "The sum a₁/2 costs 5 $" in first
    assert "Question. How large is a₁?" in first
    assert "It is small" not in first
    assert "Enter: the answer" in first
    assert "Answer\nIt is small." in answer
    assert "details" not in answer
    assert "x = 1" in answer
    assert "the code ran\n→ x = 1\n▷ check: 1 line (c shows the code) → all assertions hold\n" in second
    assert "Now a plot." in second
    assert "▷ plot: 2 lines (c shows the code)\n" in second
    assert "assert" not in second.replace("assertions", "")
    assert "print(" not in second
    assert "assert x == 1" in shown
    assert 'print("the plot ran")' in shown
    assert "the plot ran\n" in end
    assert "The end of lesson 90" in end
    assert "exercise" not in end, "it has none"


def test_a_check_that_fails_says_so(screens, folded):
    folded.write_text(folded.read_text(encoding="utf-8").replace("x == 1", "x == 2"), encoding="utf-8")
    failed = screens("lesson", "90", typed=["", "", "q"])[2]
    assert "▷ check: 1 line (c shows the code)\nThis cell failed: AssertionError" in failed
    assert "assertions hold" not in failed
    assert "90_folded.py, line 19: assert x == 2" in failed


def test_without_a_terminal_nothing_is_folded(folded, capsys):
    with folded.open("a", encoding="utf-8") as file:
        file.write("\n# %%\nfrom numpy.testing import assert_allclose\n")
    assert main(["lesson", "90"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("all assertions hold") == 1, "an import asserts nothing"
    assert "assert_allclose\n\n→ done" in shown
    parts = ["How large", "It is small.", "x = 1", "the code ran", "assert x == 1", "the plot ran"]
    assert [shown.index(part) for part in parts] == sorted(shown.index(part) for part in parts)
    assert "▷" not in shown


def test_a_lesson_continues_after_a_cell_that_fails_or_is_interrupted(course, start):
    course({"90_broken": BROKEN})
    lesson = start("-c", OWN_LESSON)
    lesson.read()
    lesson.type()
    failed = lesson.type()
    assert "This cell failed: ZeroDivisionError: division by zero" in failed
    assert "90_broken.py, line 6: x / 0" in failed
    assert "1\n" in lesson.type("!x")
    lesson.type(until="waiting\n")
    assert "stopped by Ctrl-C" in lesson.control("C", MARK)
    assert "The end of lesson 90" in lesson.type(until="npformer bugs")
    assert lesson.close() == 0


@pytest.mark.parametrize(
    ("variable", "value", "image"),
    [("KITTY_WINDOW_ID", "1", "\033_Ga=T,f=100"), ("COLORTERM", "truecolor", "▄"), ("TERM", "dumb", "")],
)
def test_pictures_are_images_or_coloured_cells_or_the_names_of_files(screens, variable, value, image):
    typed = [step_with("0.2", "00_dw"), "", "o", "q"]
    *_, shown, opened, _ = screens("lesson", "0.2", typed=typed, colours=True, **{variable: value})
    assert [each for each in ("\033_G", "▄") if each in shown] == ([image[:3]] if image else [])
    assert image in shown
    assert "lesson_figures/00_" in without_colours(shown)
    assert "(o opens it)" in without_colours(shown)
    assert "no program opens pictures here: copy lesson_figures/00_" in without_colours(opened)
