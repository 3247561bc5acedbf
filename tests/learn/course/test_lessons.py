"""Every lesson runs from top to bottom, has all of its parts, and draws the figures that it names."""

import contextlib
import os
import re
import subprocess
import sys

import pytest

from npformer.cli.output import console
from npformer.learn.course.execute import run_lesson
from npformer.learn.course.lesson import all_lessons
from npformer.learn.course.prose import replace_formulas, split_answers
from npformer.learn.course.terminal import lesson_console, lines_of, prose
from npformer.learn.exercises import EXERCISES
from npformer.plots import text_problems

LESSONS = all_lessons()
NAMES = [lesson.name for lesson in LESSONS]
CHAPTERS = {
    chapter: [lesson for lesson in LESSONS if lesson.chapter == chapter]
    for chapter in sorted({lesson.chapter for lesson in LESSONS})
}
each_chapter = pytest.mark.parametrize("lessons", CHAPTERS.values(), ids=lambda found: found[0].name[:2])


def text_of(lessons, kind):
    """Return the text of all cells of prose or of code."""
    return "\n".join(cell.text for lesson in lessons for cell in lesson.cells if cell.kind == kind)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_the_lesson_runs_as_a_plain_script(lesson, tmp_path, lesson_runs):
    """It runs in a new process without a display, and saves its figures in the folder that it prints."""
    (tmp_path / "runs").symlink_to(lesson_runs)
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(lesson.path)],
        cwd=tmp_path,
        env=environment | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    named = re.findall(r"^figure (\S+\.png)", done.stdout, re.MULTILINE)
    assert {tmp_path / path for path in named} == set(tmp_path.rglob("*.png"))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, lesson_runs):
    """Return the outcome of each cell of each lesson, run in this process."""
    folder = tmp_path_factory.mktemp("lessons")
    (folder / "runs").symlink_to(lesson_runs)
    with contextlib.chdir(folder):
        return {lesson.name: run_lesson(lesson) for lesson in LESSONS}


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_no_cell_fails_and_no_screen_overflows(lesson, outcomes):
    """The output of a cell fits a screen of 100 × 30 with the question below it."""
    for cell, outcome in outcomes[lesson.name]:
        if outcome is not None:
            assert outcome.error == "", cell
            assert outcome.printed.count("\n") <= 24, cell


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_the_figures_of_a_lesson_are_named_captioned_and_legible(lesson, outcomes):
    pictures = [p for _, outcome in outcomes[lesson.name] if outcome for p in outcome.pictures]
    for picture in pictures:
        assert picture.name.startswith(f"{lesson.chapter:02}_")
        assert picture.caption
        assert text_problems(picture.figure) == []
        assert picture.png() == picture.png()


@pytest.mark.slow
def test_no_figure_replaces_that_of_another_cell(outcomes):
    rows = [outcome for rows in outcomes.values() for _, outcome in rows if outcome]
    names = [picture.name for outcome in rows for picture in outcome.pictures]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_the_lesson_has_all_parts(lesson):
    """It has its number, a picture and exercises."""
    prose, code = text_of([lesson], "prose"), text_of([lesson], "code")
    assert lesson.cells[0].text.startswith(f"# {lesson.number} · ")
    assert "## Exercises" in prose
    assert "show_figure(" in code or "```text" in prose


@each_chapter
def test_the_chapter_has_all_parts(lessons):
    """It has a comparison with the package, a cache, a figure, a gradient check and exercises."""
    code = text_of(lessons, "code")
    for part in ("assert_allclose(", "show(cache)", "show_figure(", "gradcheck(", "assert report.ok"):
        assert part in code
    assert "npformer exercise list" in text_of(lessons, "prose")


@each_chapter
def test_the_chapter_names_its_exercises_and_no_others(lessons):
    named = re.findall(r"npformer exercise start ([\w-]+)", text_of(lessons, "prose"))
    of_chapter = [exercise.name for exercise in EXERCISES if exercise.chapter == lessons[0].chapter]
    assert sorted(set(named)) == sorted(of_chapter)


def test_the_course_is_complete():
    assert list(CHAPTERS) == list(range(26))
    for lessons in CHAPTERS.values():
        parts = [lesson.part for lesson in lessons]
        assert parts in ([None], list(range(1, len(parts) + 1)))
    assert {exercise.chapter for exercise in EXERCISES} == set(range(26)) - {15, 16, 25}


def accidental_markup(prose):
    """Return the lines inside a paragraph that Markdown takes for a list, a quotation or a heading."""
    found = []
    text = re.sub(r"^```.*?^```$|<.*?>", "", prose, flags=re.DOTALL | re.MULTILINE)
    for passage in replace_formulas(text, lambda latex, display: "x").split("\n\n"):
        signs = [
            re.match(r"([>+*-](?=\s|$)|\d+[.)](?=\s)|#+(?=\s)|[=-]+$)?", line)[0]
            for line in passage.split("\n")
        ]
        kinds = [re.sub(r"\d+", "1", sign) for sign in signs]
        first = next((kind for line, kind in zip(passage.split("\n"), kinds, strict=True) if line), "")
        found += [
            line for line, kind in zip(passage.split("\n"), kinds, strict=True) if kind not in ("", first)
        ]
    return found


@pytest.mark.parametrize(
    ("prose", "lines"),
    [
        ("- one\n  goes on\n- two\n\n1. one\n2. two\n\n> said\n> on\n\n## Heading", []),
        ("it rises to 1.55 at step\n14. For the rest", ["14. For the rest"]),
        ("a\n- b", ["- b"]),
        ("where it is\n> 0", ["> 0"]),
        ("x\n+ y\n---", ["+ y", "---"]),
        ("```text\na\n- b\n```\n\n−1 and *so*\n**on**", []),
        ("$$\na\n- b\n$$\n\nso is $a\n- b$", []),
        ("so is $a$\n- b", ["- b"]),
    ],
)
def test_accidental_markup_is_found(prose, lines):
    assert accidental_markup(prose) == lines


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_no_line_of_its_prose_turns_into_a_list_or_a_quotation(lesson):
    assert [
        line for cell in lesson.cells if cell.kind == "prose" for line in accidental_markup(cell.text)
    ] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_commands_are_not_broken_across_lines(lesson):
    """A command or a line of Python that is broken across lines in the terminal would not run when copied."""
    out = lesson_console(console())
    for cell in lesson.cells:
        if cell.kind == "prose":
            parts = [prose(part.text) for part in split_answers(cell.text)]
            shown = "\n".join(line for part in parts for line in lines_of(out, part))
            for typed in re.findall(r"(?<!`)`(!?[^`]+)`(?!`)", cell.text):
                assert " ".join(typed.split()) in shown


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_the_code_of_a_lesson_fits_a_terminal_of_100_columns(lesson):
    long = [
        line
        for cell in lesson.cells
        if cell.kind == "code"
        for line in cell.text.splitlines()
        if len(line) > 97
    ]
    assert long == []
