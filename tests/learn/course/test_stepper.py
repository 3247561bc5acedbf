"""Going through a lesson in a pseudo-terminal of 100 × 30, as a learner does."""

import re
import subprocess
import sys

import pytest
from pseudo_terminal import MARK, ROWS, Terminal, start, step_with

from npformer.learn.course.lesson import all_lessons
from npformer.learn.course.progress import LessonProgress, load_progress

__all__ = ["start"]  # a fixture

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


def step_of(screen):
    """Return the number of the step in the question at the end of a screen."""
    return int(re.findall(r"\[(\d+)/\d+\] Enter", screen)[-1])


def test_every_command(start, tmp_path):
    lesson = start("0.2")
    first = lesson.read()
    assert "After this lesson you can" in first
    assert "**" not in first, "prose is rendered"
    assert "\033[1m" in lesson.raw, "code is highlighted"
    assert "Enter: run · b back · s NAME · !LINE · q quit · ? help" in first
    second = lesson.type()
    assert "→ rng Generator" in second
    third = lesson.type()
    assert "[-0.70373524 -1.26542147 -0.62327446  0.04132598]" in third
    assert "→ x (2, 3, 4)" in third
    assert step_of(third) == 3

    assert "x (2, 3, 4)\n[[[ 0.1257" in lesson.type("s x")
    assert "x (2, 3, 4)" in lesson.type("s")
    assert "did you mean x?" in lesson.type("s xx")
    assert "(4, 3, 2)\n" in lesson.type("!x.T.shape")
    assert "zeroed\n" in lesson.type("!x[:] = 0; print('zeroed')")
    assert "NameError: name 'w' is not defined" in lesson.type("!w")
    assert "w is defined by the code on the screen: press Enter first" in lesson.type("s w")
    assert "'what' is not a command" in lesson.type("what")
    assert "This is a command for the shell" in lesson.type("npformer exercise list")
    assert "from 1 to 21" in lesson.type("g")
    assert "back one step" in lesson.type("?")

    back = lesson.type("b")
    assert step_of(back) == 2
    assert "(A picture" not in back
    assert step_of(lesson.type("l")) == 2
    assert step_of(lesson.type("B")) == 1, "the first step is a step like any other"
    assert step_of(lesson.type("l")) == 1
    assert step_of(lesson.type()) == 2
    assert "NameError" in lesson.type("!x")
    assert step_of(lesson.type()) == 3
    assert "0.12573" in lesson.type("!x[0, 0, 0]"), "what ! changed is as the lesson left it"

    assert step_of(lesson.type("g 1")) == 1
    assert step_of(lesson.type("b")) == 1
    assert step_of(lesson.type("g 3")) == 3
    left = lesson.type("q", until="goes on from there.")
    assert "You stopped at step 3 of" in left
    assert lesson.close() == 0
    assert load_progress()["00_2_forward_and_backward"].step == 2


@pytest.mark.slow
@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.name)
def test_enter_alone_leads_to_the_end_and_nothing_scrolls_away(lesson, start, tmp_path, lesson_runs):
    (tmp_path / "runs").symlink_to(lesson_runs)
    terminal = start(lesson.number)
    screen, screens = terminal.read(), []
    while f"The end of lesson {lesson.number}" not in screen:
        screens.append(screen)
        assert screen.count("\n") < ROWS, screen
        screen = terminal.type()
    assert terminal.close() == 0
    whole = "".join(screens) + screen
    assert "This cell failed" not in whole
    assert "**Next**" not in whole, "prose is rendered"
    drawn = sorted(path.name for path in (tmp_path / "lesson_figures").glob("*"))
    assert drawn == sorted(set(re.findall(r"figure lesson_figures/(\S+\.png)", whole)))
    place = load_progress()[lesson.name]
    assert (place.step, place.done) == (0, True)


def test_the_output_of_a_step_is_on_its_screen(start):
    lesson = start("5")
    lesson.read()
    lesson.type(f"g {step_with('5', 'q1 ·')}")
    assert "q1 · k1 = 112.0000" in lesson.type()


def test_the_progress_is_saved_until_restart(start):
    lesson = start("0.2")
    lesson.read()
    lesson.type()
    lesson.type()
    assert "You stopped at step 3" in lesson.control("D", "goes on from there.")
    assert lesson.close() == 0

    lesson = start()  # the lesson that was opened last
    again = lesson.read()
    assert "continues at step 3" in again
    assert "Running the 2 cells before this step again." in again
    assert "(2, 3, 4)" in lesson.type("!x.shape")
    assert "You stopped at step 3" in lesson.control("C", "goes on from there.")
    assert lesson.close() == 0

    lesson = start("0.2", "--restart")
    assert "Running the" not in lesson.read()
    assert step_of(lesson.type("b")) == 1
    lesson.type("q", until="goes on from there.")
    assert lesson.close() == 0


OWN_LESSON = (
    "import sys, pathlib; from npformer.learn.course import lesson; "
    "from npformer.cli.main import main; "
    "lesson.CHECKOUT = pathlib.Path('lessons'); sys.exit(main(['lesson', '90']))"
)


@pytest.fixture
def start_own(tmp_path, start):
    """Return a function that starts a lesson with the given source in a pseudo-terminal."""
    terminals = []

    def begin(source):
        (tmp_path / "lessons").mkdir()
        (tmp_path / "lessons" / "90_own.py").write_text(source, encoding="utf-8")
        terminals.append(Terminal([sys.executable, "-c", OWN_LESSON], tmp_path))
        return terminals[-1]

    yield begin
    for terminal in terminals:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.close()


FOLDED = """\
# %% [markdown]
# # 90 · Folded
#
# The formula is $\\frac{a}{\\sqrt{d_k}}$.
#
# **Question.** Why?
#
# <details><summary>Answer</summary>
# Because of **this**.
# </details>
# %%
x = 1
print("the code ran")
# %% tags=["check"]
assert x == 1
assert isinstance(x, int)
# %% [markdown]
# Now a plot.
# %% tags=["plot"]
print("the plot ran")
"""


def test_answers_and_tagged_cells_are_folded_until_the_reader_asks(start_own):
    lesson = start_own(FOLDED)
    first = lesson.read()
    assert "The formula is a/√dₖ." in first
    assert "Question. Why?" in first
    assert "Because" not in first
    assert "Enter: the answer" in first
    assert "There is no folded code" in lesson.type("c")
    answer = lesson.type()
    assert "Answer\nBecause of this." in answer
    assert "details" not in answer
    assert "x = 1" in answer
    second = lesson.type()
    assert "the code ran\n→ x = 1\n▷ check: 2 lines (c shows them) → all assertions hold\n" in second
    assert "Now a plot." in second
    assert "▷ plot: 1 line (c shows it)\n" in second
    assert "isinstance" not in second
    assert "print(" not in second
    shown = lesson.type("c")
    assert "assert isinstance(x, int)" in shown
    assert 'print("the plot ran")' in shown
    assert "the plot ran\n" in lesson.type(until="The end of lesson 90")


def test_a_check_that_fails_says_so(start_own):
    lesson = start_own(FOLDED.replace("isinstance(x, int)", "x == 2"))
    lesson.read()
    lesson.type()
    failed = lesson.type()
    assert "▷ check: 2 lines (c shows them)\nThis cell failed: AssertionError" in failed
    assert "assertions hold" not in failed
    assert "90_own.py, line 16: assert x == 2" in failed


def test_without_a_terminal_nothing_is_folded(tmp_path, start):
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "90_own.py").write_text(FOLDED, encoding="utf-8")
    command = [sys.executable, "-c", OWN_LESSON]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    parts = [
        "Why?",
        "Because of this.",
        "x = 1",
        "the code ran",
        "isinstance(x, int)",
        "the plot ran",
    ]
    assert [shown.index(part) for part in parts] == sorted(shown.index(part) for part in parts)
    assert "▷" not in shown


@pytest.fixture
def broken(start_own):
    """Start a lesson whose second cell fails and whose third cell waits."""
    return start_own(BROKEN)


def test_a_lesson_continues_after_a_cell_that_fails_or_is_interrupted(broken):
    broken.read()
    broken.type()
    failed = broken.type()
    assert "This cell failed: ZeroDivisionError: division by zero" in failed
    assert "90_own.py, line 6: x / 0" in failed
    assert "1\n" in broken.type("!x")
    broken.type(until="waiting\n")
    assert "stopped by Ctrl-C" in broken.control("C", MARK)
    end = broken.type(until="npformer bugs")
    assert "The end of lesson 90" in end
    assert "exercise" not in end, "it has none"
    assert broken.close() == 0


def test_pictures_are_shown_in_a_terminal_that_supports_them(start):
    lesson = start("0.2", KITTY_WINDOW_ID="1")
    lesson.read()
    lesson.type(f"g {step_with('0.2', '00_dw')}")
    lesson.type()
    assert "\033_Ga=T,f=100" in lesson.raw


def test_pictures_are_coloured_cells_in_other_terminals(start):
    lesson = start("0.2")
    lesson.read()
    assert "No figure was drawn yet." in lesson.type("o")
    lesson.type(f"g {step_with('0.2', '00_dw')}")
    screen = lesson.type()
    assert screen.count("▄") > 500
    assert "figure lesson_figures/00_" in screen
    assert "(o opens it)" in screen
    assert "no program opens pictures here: copy lesson_figures/00_" in lesson.type("o")


def test_a_terminal_without_colours_shows_the_name_of_the_file(start):
    lesson = start("0.2", TERM="dumb")
    lesson.read()
    lesson.type(f"g {step_with('0.2', '00_dw')}")
    screen = lesson.type()
    assert "▄" not in screen
    assert "figure lesson_figures/00_" in screen


@pytest.mark.parametrize("command", [["attention", "a man", "--model", "en-de"], ["masks", "a man"]])
def test_commands_that_draw_show_their_pictures(command, tmp_path):
    terminal = Terminal([sys.executable, "-m", "npformer", *command], tmp_path)
    screen = terminal.read()
    assert screen.count("▄") > 300
    assert re.search(r"^wrote (\S+png)\n(.*\n)*\1\n", screen, re.MULTILINE)
    assert "Enter: more · o opens the file · q quit" in screen
    assert "no program opens pictures here" in terminal.type("o")
    assert "▄" in terminal.type()
    terminal.type("q", until="\n")
    assert terminal.close() == 0


def test_saved_progress_beyond_the_end_of_a_shorter_lesson_is_its_end(start, tmp_path):
    from npformer.learn.course.progress import save_progress

    save_progress("00_2_forward_and_backward", LessonProgress(400, 500))
    lesson = start("0.2")
    lesson.read()
    lesson.type("q", until="goes on from there.")
    assert lesson.close() == 0
