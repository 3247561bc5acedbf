"""What must hold for the outcomes of every lesson: on a page, in a notebook, and in a terminal.

A lesson runs once, and its outcomes serve all tests. Since lessons take minutes, three test files divide the
chapters among them: in each, a class inherits the tests and names its chapters.
"""

import base64
import functools
import html
import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from course import LESSONS
from parsed_page import ParsedPage
from typing_reader import ROWS

from npformer.learn.course import export
from npformer.learn.course.pictures import Picture
from npformer.learn.course.progress import load_progress
from npformer.learn.course.prose import formulas
from npformer.learn.course.routes import place_on_routes
from npformer.learn.figures import course_map
from npformer.plots import text_problems

NIGHTLY = bool(os.environ.get("NPFORMER_NIGHTLY"))
the_map = functools.cache(course_map.course_map)
MOST_COLUMNS = 80  # of a line that is surely not broken
MOST_LINES = 24  # lines: above and below an output stand the prose, the code or the question


class RecordedRunner:
    """A runner that repeats the outcomes of a lesson instead of running it."""

    def __init__(self, rows):
        self.outcomes = {cell.line: outcome for cell, outcome in rows}
        self.namespace = {}

    def run(self, cell, echo=None):
        """Return the outcome of a cell, and write its output."""
        outcome = self.outcomes[cell.line]
        if echo is not None:
            echo.write(outcome.printed)
        return outcome

    def replay(self, step):
        """Run no cell again. Return "", since none fails."""
        return ""


class EveryLesson:
    """The tests. A subclass names its chapters."""

    chapters = range(0)
    scripts = ()  # the numbers of the lessons that run in a new process as well; every night, all of them do

    def pytest_generate_tests(self, metafunc):
        """Run each test that has the argument `lesson` or `script` for every lesson of the chapters."""
        lessons = [lesson for lesson in LESSONS if lesson.chapter in self.chapters]
        if "lesson" in metafunc.fixturenames:
            metafunc.parametrize("lesson", lessons, ids=lambda lesson: lesson.name)
        if "script" in metafunc.fixturenames:
            marks = [() if lesson.number in self.scripts else pytest.mark.nightly for lesson in lessons]
            cases = [
                pytest.param(lesson, id=lesson.name, marks=mark)
                for lesson, mark in zip(lessons, marks, strict=True)
            ]
            metafunc.parametrize("script", cases)

    @pytest.fixture
    def rows(self, lesson, outcomes_of, png_of, monkeypatch):
        """Return the cells of a lesson with their outcomes, which exports and the terminal use as well."""
        rows = outcomes_of(lesson)
        monkeypatch.setattr(export, "run_lesson", lambda lesson: rows)
        monkeypatch.setattr("npformer.learn.course.stepper.Runner", lambda lesson: RecordedRunner(rows))
        monkeypatch.setattr(Picture, "png", lambda picture: png_of(picture.figure))
        monkeypatch.setattr(Picture, "save", write_png)
        monkeypatch.setattr(course_map, "course_map", lambda highlighted: the_map())
        return rows

    def test_no_cell_fails_and_no_output_overflows_a_screen(self, rows):
        for cell, outcome in rows:
            if outcome is not None:
                assert outcome.error == "", cell
                assert outcome.printed.count("\n") <= MOST_LINES, cell

    def test_its_figures_are_named_captioned_legible_and_always_the_same(self, lesson, rows, png_of):
        """By default, one figure of each chapter is drawn twice, and every night each of them is."""
        pictures = pictures_of(rows)
        for picture in pictures:
            assert picture.name.startswith(f"{lesson.chapter:02}_")
            assert picture.caption
            assert text_problems(picture.figure) == []
        for picture in pictures if NIGHTLY else pictures[: lesson.part in (None, 1)]:
            assert png_of.__wrapped__(picture.figure) == picture.png()

    def test_no_figure_replaces_that_of_another_cell(self, outcomes_of):
        lessons = [lesson for lesson in LESSONS if lesson.chapter in self.chapters]
        names = [picture.name for lesson in lessons for picture in pictures_of(outcomes_of(lesson))]
        assert sorted(names) == sorted(set(names))

    def test_in_a_terminal_enter_leads_to_the_end_and_nothing_scrolls_away(self, lesson, rows, screens):
        """The terminal shows images, whose lines count. A real terminal, below, draws coloured cells."""
        shown = screens("lesson", lesson.number, KITTY_WINDOW_ID="1")
        assert max(screen.count("\n") for screen in shown) < ROWS
        whole = "".join(shown)
        assert f"The end of lesson {lesson.number}" in shown[-1]
        assert "This cell failed" not in whole
        assert "**Next**" not in whole, "prose is rendered"
        for _, outcome in rows:
            if outcome is not None:
                lines = {line for line in outcome.printed.splitlines() if len(line) <= MOST_COLUMNS}
                assert lines <= set(whole.splitlines())
        files = re.findall(r"figure lesson_figures/(\S+)\.png", whole)
        assert files == [picture.name for picture in pictures_of(rows)]
        assert whole.count("\033_Ga=T") == len(files)
        place = load_progress()[lesson.name]
        assert (place.step, place.done) == (0, True)

    def test_its_notebook_has_every_cell_with_its_output(self, lesson, rows):
        notebook = json.loads(export.as_notebook(lesson))
        nbformat.validate(notebook)
        cells = notebook["cells"]
        ids = [cell["id"] for cell in cells]
        assert len(set(ids)) == len(ids)
        # Markdown in a folded answer needs an empty line before it
        sources = ["".join(cell["source"]).replace("</summary>\n\n", "</summary>\n") for cell in cells[1:]]
        sources = [source.replace("\n\n</details>", "\n</details>") for source in sources]
        first, *others = [cell.text for cell in lesson.cells]
        assert sources == [f"{first}\n\n*{place_on_routes(lesson)}*", *others]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
        for cell, (_, outcome) in zip(cells[1:], rows, strict=True):
            assert cell["cell_type"] == ("markdown" if outcome is None else "code")
            outputs = cell.get("outputs", [])
            text = "".join(part for output in outputs for part in output.get("text", []))
            drawn = [base64.b64decode(output["data"]["image/png"]) for output in outputs if "data" in output]
            if outcome is not None:
                captions = "".join(f"{picture.caption}\n" for picture in outcome.pictures)
                assert text == outcome.printed + captions
                assert drawn == [picture.png() for picture in outcome.pictures]

    def test_its_page_is_whole_and_loads_nothing(self, lesson, rows):
        page = export.as_page(lesson)
        parsed = ParsedPage(page)
        assert all(address.startswith("data:image/png;base64,") for address in parsed.loads)
        assert "script" not in parsed.tags
        assert "<th></th>" not in page  # the empty corner of a table is no head
        assert not re.search(r"url\((?!['\"]?data:)|@import", page)
        has_map = "Show this part in the architecture" in page
        assert parsed.tags.count("figure") == len(pictures_of(rows)) + has_map
        displayed = [
            display for cell, outcome in rows if outcome is None for _, display in formulas(cell.text)
        ]
        assert page.count('<math display="block"') == sum(displayed)
        outputs = re.findall(r'<pre class="output">(.*?)</pre>', page, re.DOTALL)
        printed = [outcome.printed.rstrip() for _, outcome in rows if outcome and outcome.printed]
        assert [html.unescape(output) for output in outputs] == printed
        named = re.findall(r'<div class="defined">→ (.*?)</div>', page)
        defined = [" ∙ ".join(outcome.defined) for cell, outcome in rows if outcome and not cell.tags]
        assert [html.unescape(names) for names in named] == [names for names in defined if names]

    @pytest.fixture
    def beside(self, lesson_folder, tmp_path):
        """Return a new working folder with the trained models of the others."""
        try:
            (tmp_path / "runs").symlink_to(lesson_folder / "runs")
        except OSError:
            pytest.skip("this user cannot make symbolic links")  # on Windows, that is a privilege
        return tmp_path

    def test_it_runs_as_a_plain_script(self, script, beside):
        """It runs in a new process without a display, and saves its figures in the folder that it prints."""
        environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
        done = subprocess.run(
            [sys.executable, "-W", "error", script.path],
            cwd=beside,
            env=environment | {"OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        named = re.findall(r"^figure (\S+\.png)", done.stdout, re.MULTILINE)
        assert {beside / path for path in named} == set(beside.rglob("lesson_figures/*.png"))

    def test_it_is_read_in_a_real_terminal(self, script, beside, start):
        terminal = start("-m", "npformer", "lesson", script.number)
        screens = [terminal.read()]
        while f"The end of lesson {script.number}" not in screens[-1]:
            screens.append(terminal.type())
        assert terminal.close() == 0
        assert max(screen.count("\n") for screen in screens) < ROWS
        assert "This cell failed" not in "".join(screens)


def pictures_of(rows):
    """Return the figures of a lesson."""
    return [picture for _, outcome in rows if outcome is not None for picture in outcome.pictures]


def write_png(picture, folder):
    """Write a figure that is already drawn, as Picture.save does."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{picture.name}.png"
    path.write_bytes(picture.png())
    return path
