"""The outcomes of the lessons, each of which runs once for all tests, and the terminals that show them."""

import contextlib
import copy
import dataclasses
import functools
import io
import itertools
import os
import sys

import browser
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

chromium = browser.chromium


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


# Lessons that train for seconds: texts of their cells, and those that replace them by day, with fewer steps
SHORTER = {
    "11.2": {"steps=250": "steps=50"},
    "17.3": {"range(1, 251)": "range(1, 51)"},
    "17.4": {"range(1, 251)": "range(1, 51)"},
    "18.4": {"steps=400": "steps=40", "steps=1600": "steps=60", "40, 100, 400)": "30, 35, 40)"},
    "21.3": {", 250)": ", 60)"},
    "21.5": {"arrows, 120)": "arrows, 40)", "arrows, 100)": "arrows, 40)"},
    "24.1": {},  # the models of these have SHARED_STEPS
    "24.2": {},
    "25": {},
}
# texts in those of their checks that need all steps; in the lessons that are not named, all checks need them
NEED_ALL_STEPS = {
    "17.3": ["scores[:, 2]", "turned[0]"],
    "17.4": ["scores[0, 5]", "min(right_weight)"],
    "24.1": ["quality.loss"],
    "24.2": ["tail.mean()", "min(shares)"],
    "25": ["animals.max()", "they.value"],
}
SHARED_STEPS = {"partly_trained": 400, "short_gpt": 150, "short_gpt2": 100}


def by_day(changes, left_out):
    """Return a function that runs a cell of a lesson with changes of its text, or not if it is left out."""

    def run_cell(runner, cell, echo=None, run=Runner.run):
        if "check" in cell.tags and any(text in cell.text for text in left_out):
            return Outcome()
        for old, new in changes.items():
            cell = dataclasses.replace(cell, text=cell.text.replace(old, new))
        return run(runner, cell, echo)

    return run_cell


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

    Several lessons begin with the same training, which is made once. Every night, all trainings have all of
    their steps, also that of chapter 13, which takes a minute.
    """
    nightly = os.environ.get("NPFORMER_NIGHTLY")
    shared = {
        name: once(functools.partial(getattr(trained, name), **({} if nightly else {"steps": steps})))
        for name, steps in SHARED_STEPS.items()
    }

    made = {}

    @functools.cache
    def run(lesson):
        errors, changes = io.StringIO(), SHORTER.get(lesson.number, {} if shares_a_run(lesson) else None)
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
            if changes is not None and not nightly:
                assert all(any(old in cell.text for cell in lesson.cells) for old in changes)
                patch.setattr(trained, "lesson_recipe", short_recipe)
                patch.setattr(Runner, "run", by_day(changes, NEED_ALL_STEPS.get(lesson.number, [""])))
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
