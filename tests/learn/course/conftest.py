"""The outcomes of the lessons, each of which runs once for all tests, and the terminals that show them."""

import contextlib
import copy
import functools
import io
import itertools
import os
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from typing_reader import screens_of

from npformer.learn.course import lesson as lesson_module
from npformer.learn.course import trained
from npformer.learn.course.execute import Outcome, Runner, run_lesson
from npformer.learn.course.pictures import Picture
from npformer.learn.site.lesson_pages import shares_a_run
from npformer.training import step as training_step


@pytest.fixture(scope="session")
def lesson_folder(tmp_path_factory):
    """Return the working folder of the lessons: chapter 15 uses the model that chapter 13 trained."""
    folder = tmp_path_factory.mktemp("lessons")
    (folder / "runs").mkdir()
    return folder


def once(train):
    """Return a function that trains when it is first called, and returns a copy of what was trained."""
    made = functools.cache(train)
    return lambda: copy.deepcopy(made())


def short_recipe(recipe=trained.lesson_recipe):
    """Return the training of chapter 13 with a fortieth of its steps."""
    training = recipe().training
    steps = training.steps // 40
    changes = {"steps": steps, "checkpoint_every": steps, "warmup_steps": training.warmup_steps // 40}
    return recipe()._replace(training=training.replace(**changes, validate_every=steps // 2))


def run_without_checks(runner, cell, echo=None, run=Runner.run):
    """Run a cell of a lesson, unless it checks the numbers of a model that is fully trained."""
    return Outcome() if "check" in cell.tags else run(runner, cell, echo)


SAME = ("22.4", "22.5")  # lessons with the same training
KEPT = 12


def shared_steps(number, made):
    """Return a function in the place of make_step, for the first of two lessons and the one that repeats it.

    The second one makes its first steps itself, and then takes the parameters that the first one had.

    Args:
        number: The number of the lesson.
        made: The parameters after each twelfth step of the first lesson, which this function fills.
    """
    steps, real = itertools.count(1), training_step.make_step

    def make_step(model, *rest):
        step = next(steps)
        if number == SAME[0] or step <= KEPT or KEPT not in made:
            real(model, *rest)
            if step % KEPT == 0:
                assert np.array_equal(made.setdefault(step, model.values.copy()), model.values)
        elif step in made:
            model.values[...] = made[step]

    return make_step


@pytest.fixture(scope="session")
def outcomes_of(lesson_folder):
    """Return a function that returns the cells of a lesson with their outcomes.

    Several lessons begin with the same training, which is made once. The translator of chapter 13 is trained
    for a minute every night. By day it is trained for some seconds, and what the lessons check of it is not.
    """
    shared = {name: once(getattr(trained, name)) for name in ("partly_trained", "short_gpt")}
    made = {}

    @functools.cache
    def run(lesson):
        errors = io.StringIO()
        with (
            contextlib.chdir(lesson_folder),
            threadpool_limits(1),
            contextlib.redirect_stderr(errors),
            pytest.MonkeyPatch.context() as patch,
        ):
            for name, train in shared.items():
                patch.setattr(trained, name, train)
            if lesson.number in SAME:
                patch.setattr(training_step, "make_step", shared_steps(lesson.number, made))
            if shares_a_run(lesson) and not os.environ.get("NPFORMER_NIGHTLY"):
                patch.setattr(trained, "lesson_recipe", short_recipe)
                patch.setattr(Runner, "run", run_without_checks)
            rows = run_lesson(lesson)
        assert errors.getvalue() == ""
        return rows

    return run


@pytest.fixture(scope="session")
def png_of():
    """Return a function that returns a figure as PNG."""
    draw = Picture.png
    return functools.cache(lambda figure: draw(Picture(figure, "", "")))


FOLDED = """\
# %% [markdown]
# # 90 · Folded
#
# The sum $\\frac{a_1}{2}$ costs 5 \\$, and `$b$` is code. It is
#
# $$
# x = \\sqrt{y}
# $$
#
# **Question.** How large is $a_1$?
#
# <details><summary>Answer</summary>
# It is *small*.
# </details>
# %%
x = 1
print("the code ran")
# %% tags=["check"]
assert x == 1
# %% [markdown]
# Now a plot.
# %% tags=["plot"]
y = 2
print("the plot ran")
"""


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """Go to an empty folder, which also gets the progress, and return it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def course(inside, monkeypatch):
    """Return a function that makes a course of some lessons, from their sources by name."""
    for name in ("CHECKOUT", "INSTALLED"):
        monkeypatch.setattr(lesson_module, name, inside / "lessons")

    def write(sources):
        (inside / "lessons").mkdir()
        for name, source in sources.items():
            (inside / "lessons" / f"{name}.py").write_text(source, encoding="utf-8")

    return write


@pytest.fixture
def folded(course, inside):
    """Make a course of one lesson, 90, with formulas, an answer and folded cells. Return its file."""
    course({"90_folded": FOLDED})
    return inside / "lessons" / "90_folded.py"


@pytest.fixture
def screens(inside, monkeypatch):
    """Return the function `screens_of`, with which a test reads a lesson in an empty folder."""
    return functools.partial(screens_of, monkeypatch)


@pytest.fixture
def start(tmp_path):
    """Return a function that starts Python in a pseudo-terminal. At the end, living processes are killed."""
    pseudo_terminal, terminals = pytest.importorskip("pseudo_terminal"), []

    def begin(*arguments, **settings):
        settings = {"XDG_STATE_HOME": str(tmp_path / "state"), **settings}
        terminals.append(pseudo_terminal.Terminal([sys.executable, *arguments], tmp_path, **settings))
        return terminals[-1]

    yield begin
    for terminal in terminals:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.close()
