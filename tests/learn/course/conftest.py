"""The outcomes of the lessons, each of which runs once for all tests, and the terminals that show them."""

import contextlib
import functools
import io
import sys

import pytest
from threadpoolctl import threadpool_limits
from typing_reader import screens_of

from npformer.learn.course import lesson as lesson_module
from npformer.learn.course.execute import run_lesson
from npformer.learn.course.pictures import Picture

pytest.register_assert_rewrite("every_lesson", "parsed_page")


@pytest.fixture(scope="session")
def lesson_folder(tmp_path_factory):
    """Return the working folder of the lessons: chapter 15 uses the model that chapter 13 trained."""
    folder = tmp_path_factory.mktemp("lessons")
    (folder / "runs").mkdir()
    return folder


@pytest.fixture(scope="session")
def outcomes_of(lesson_folder):
    """Return a function that returns the cells of a lesson with their outcomes."""

    @functools.cache
    def run(lesson):
        errors = io.StringIO()
        with contextlib.chdir(lesson_folder), threadpool_limits(1), contextlib.redirect_stderr(errors):
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
