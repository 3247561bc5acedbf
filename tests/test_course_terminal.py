"""A lesson stepped through a pseudo-terminal of 100 × 30, as a learner does."""

import re
import sys

import pytest
from pseudo_terminal import MARK, ROWS, Terminal, start

from npformer.course.library import all_lessons
from npformer.course.places import Place, load_places

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
time.sleep(30)
# %% [markdown]
# The last words.
"""


def step_of(screen):
    """The number of the step that the question at the end of a screen names."""
    return int(re.findall(r"\[(\d+)/\d+\] Enter", screen)[-1])


def test_a_walk_with_every_key(start, tmp_path):
    lesson = start("0")
    first = lesson.read()
    assert "The question." in first
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
    assert "there is x" in lesson.type("s xx")
    assert "(4, 3, 2)\n" in lesson.type("!x.T.shape")
    assert "zeroed\n" in lesson.type("!x[:] = 0; print('zeroed')")
    assert "NameError: name 'w' is not defined" in lesson.type("!w")
    assert "w is what the code on the screen defines: press Enter first" in lesson.type("s w")
    assert "'what' is no command" in lesson.type("what")
    assert "That is for the shell" in lesson.type("npformer exercise list")
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
    left = lesson.type("q", until="goes on there.")
    assert "Left at step 3 of" in left
    assert lesson.close() == 0
    assert load_places()["00_forward_and_backward"].step == 2


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.name)
def test_enter_alone_leads_to_the_end_and_nothing_scrolls_away(lesson, start, tmp_path, lesson_runs):
    (tmp_path / "runs").symlink_to(lesson_runs)
    terminal = start(str(lesson.number))
    screen, screens = terminal.read(), []
    while f"The end of lesson {lesson.number}" not in screen:
        screens.append(screen)
        assert screen.count("\n") < ROWS, screen
        screen = terminal.type()
    assert terminal.close() == 0
    whole = "".join(screens) + screen
    assert "This cell failed" not in whole
    assert "**Next**" not in whole, "prose is rendered"
    drawn = sorted(path.name for path in (tmp_path / "lesson_figures").iterdir())
    assert drawn == sorted(set(re.findall(r"figure lesson_figures/(\S+\.png)", whole)))
    place = load_places()[lesson.name]
    assert (place.step, place.done) == (0, True)


def test_what_a_step_prints_is_on_its_screen(start):
    lesson = start("5")
    lesson.read()
    lesson.type("g 4")
    assert "q1 · k1 = 112.0000" in lesson.type()


def test_the_place_is_remembered_until_restart(start):
    lesson = start("0")
    lesson.read()
    lesson.type()
    lesson.type()
    assert "Left at step 3" in lesson.control("D", "goes on there.")
    assert lesson.close() == 0

    lesson = start()  # the one that was open last
    again = lesson.read()
    assert "on from step 3" in again
    assert "Running the 2 cells before this step anew." in again
    assert "(2, 3, 4)" in lesson.type("!x.shape")
    assert "Left at step 3" in lesson.control("C", "goes on there.")
    assert lesson.close() == 0

    lesson = start("0", "--restart")
    assert "Running the" not in lesson.read()
    assert step_of(lesson.type("b")) == 1
    lesson.type("q", until="goes on there.")
    assert lesson.close() == 0


@pytest.fixture
def broken(tmp_path, start):
    """A lesson whose second cell fails and whose third waits."""
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "90_broken.py").write_text(BROKEN, encoding="utf-8")
    code = (
        "import sys, pathlib; from npformer.course import library; from npformer.cli import main; "
        "library.CHECKOUT = pathlib.Path('lessons'); sys.exit(main(['lesson', '90']))"
    )
    terminal = Terminal([sys.executable, "-c", code], tmp_path)
    yield terminal
    if terminal.process.poll() is None:
        terminal.process.kill()
        terminal.close()


def test_a_cell_that_fails_or_is_stopped_does_not_end_the_lesson(broken):
    broken.read()
    broken.type()
    failed = broken.type()
    assert "This cell failed: ZeroDivisionError: division by zero" in failed
    assert "90_broken.py, line 6: x / 0" in failed
    assert "1\n" in broken.type("!x")
    broken.type(until="waiting\n")
    assert "stopped by Ctrl-C" in broken.control("C", MARK)
    end = broken.type(until="npformer bugs")
    assert "The end of lesson 90" in end
    assert "exercise" not in end, "it has none"
    assert broken.close() == 0


def test_a_terminal_with_pictures_gets_them(start):
    lesson = start("0", KITTY_WINDOW_ID="1")
    lesson.read()
    lesson.type("g 9")
    lesson.type()
    assert "\033_Ga=T,f=100" in lesson.raw


def test_a_place_beyond_a_shortened_lesson_is_its_end(start, tmp_path):
    from npformer.course.places import save_place

    save_place("00_forward_and_backward", Place(400, 500))
    lesson = start("0")
    lesson.read()
    lesson.type("q", until="goes on there.")
    assert lesson.close() == 0
