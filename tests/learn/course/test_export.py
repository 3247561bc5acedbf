"""A lesson as a notebook and as a web page, and the commands `lesson` and `lessons`."""

import json
import re

import pytest
from browser import open_page
from course import LESSONS
from parsed_page import ParsedPage
from paths import ROOT
from readers import PHONE

from npformer.cli.main import main
from npformer.learn.course.execute import Outcome
from npformer.learn.course.export import INSTALLATION, PACKAGE, as_page
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Cell, find_lesson
from npformer.learn.course.markup import cell_html, inline_figure
from npformer.learn.course.pictures import Picture
from npformer.learn.course.progress import LessonProgress, save_progress
from npformer.learn.course.routes import ROUTES
from npformer.plots import curves

LESSON = find_lesson("5.1")
pytestmark = pytest.mark.usefixtures("inside")


def test_a_notebook_begins_with_the_installation_and_is_never_overwritten(inside, capsys):
    assert main(["lesson", LESSON.number, "--notebook"]) == 0
    file = inside / f"{LESSON.name}.ipynb"
    assert capsys.readouterr().out.startswith(f"wrote {file.name}: open it with")
    notebook = json.loads(file.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert f"%pip install --quiet {PACKAGE}" in "".join(notebook["cells"][0]["source"])
    file.write_text("work")
    assert main(["lesson", "--notebook", LESSON.number]) == 2, "the number may follow the option"
    assert "may contain your work" in capsys.readouterr().err
    assert file.read_text() == "work"


def test_the_first_cell_of_a_notebook_installs_npformer_only_where_it_is_missing(monkeypatch):
    """It is run as Jupyter runs it, with the line that begins with % as a call."""
    code = re.sub(r"%pip (.*)", r"pip('\1')", INSTALLATION)
    called = []
    exec(code, {"pip": called.append})
    assert called == []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(code, {"pip": called.append})
    assert called == [f"install --quiet {PACKAGE}"]


def test_notebooks_install_the_package_from_the_address_of_the_project():
    assert f'ADDRESS = "{PACKAGE.removeprefix("git+")}"' in (ROOT / "setup.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(("option", "what"), [("--notebook", "notebook"), ("--html", "page")])
def test_nothing_is_written_of_a_lesson_that_fails(option, what, course, inside, capsys):
    course({"90_fails": "# %%\nx = 1\n# %%\nx / 0\n"})
    assert main(["lesson", "90", option]) == 2
    message = f"npformer: no {what} was written, since a cell fails: ZeroDivisionError: division by zero; "
    assert capsys.readouterr().err == message + "90_fails.py, line 4: x / 0\n"
    assert [path.name for path in inside.iterdir()] == ["lessons"]
    assert main(["lesson", option, "masks"]) == 2, "what follows is the name of the file"
    assert "masks cannot be written (its name does not end in ." in capsys.readouterr().err
    # without a terminal the lesson runs to its end, and the exit status shows the failure
    assert main(["lesson", "90"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_a_page_typesets_formulas_and_folds_answers_and_cells(folded, inside):
    assert main(["lesson", "90", "--html"]) == 0
    page = (inside / "90_folded.html").read_text(encoding="utf-8")
    tags = ParsedPage(page).tags
    assert tags.count("math") == 3
    assert "<mfrac><mrow><msub><mi>a</mi><mn>1</mn></msub></mrow><mrow><mn>2</mn></mrow></mfrac>" in page
    assert 'display="block"' in page
    assert "costs 5 $, and <code>$b$</code> is code" in page
    assert "<details><summary>Answer</summary>\n<p>It is <em>small</em>.</p>\n</details>" in page
    assert '<details class="folded"><summary>check: 1 line</summary>' in page
    assert '<details class="folded"><summary>plot: 2 lines</summary>' in page
    output = page.index('<pre class="output">the plot ran</pre>')
    assert page.rindex("</details>", 0, output) > page.rindex("<details", 0, output), "output is not folded"
    assert "→ y = 2" not in page


@pytest.mark.browser
@pytest.mark.parametrize(
    "wide",
    [
        "| a |" + " thirty |" * 30 + "\n|" + "---|" * 31,
        "- `" + "a_long_name." * 9 + "`",
        "$$" + "x + " * 60 + "x$$",
        "Here $" + "x + " * 60 + "x$.",
    ],
    ids=["table", "name", "formula", "formula in a line"],
)
def test_nothing_makes_a_page_wider_than_a_phone(wide, chromium, course):
    text = f"# 90 · Wide\n\n{wide}\n\nIt is wide.".replace("\n", "\n# ")
    course({"90_wide": f"# %% [markdown]\n# {text}\n"})
    with open_page(chromium, as_page(find_lesson("90")), **PHONE) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_notebook_keeps_formulas_and_folds_answers_and_cells(folded, inside):
    assert main(["lesson", "90", "--notebook"]) == 0
    notebook = json.loads((inside / "90_folded.ipynb").read_text(encoding="utf-8"))
    opening, code, check, _, plot = notebook["cells"][-5:]
    text = "".join(opening["source"])
    assert "The sum $\\frac{a_1}{2}$ costs 5 \\$" in text
    assert "$$\nx = \\sqrt{y}\n$$" in text
    assert "<details><summary>Answer</summary>\n\nIt is *small*.\n\n</details>" in text
    assert code["metadata"] == {}
    for cell, tag in ((check, "check"), (plot, "plot")):
        assert cell["metadata"]["tags"] == [tag]
        assert cell["metadata"]["jupyter"] == {"source_hidden": True}


def test_a_formula_with_a_mistake_is_named(course, capsys):
    course({"90_wrong": "# %% [markdown]\n# Now $\\foo{x}$.\n"})
    assert main(["lesson", "90", "--html"]) == 2
    assert "unknown command \\foo" in capsys.readouterr().err


def test_what_a_cell_prints_and_names_is_escaped():
    """Output, definitions and captions are text, also in an attribute, and hold no control characters."""
    figure = Picture(curves([[1.0, 2.0]]), "a", '"><script>alert("\x1b")</script>')
    outcome = Outcome("<b>\x1b[31m&amp;\n\tb</b>", [figure], ["x <i>"])
    page = cell_html(Cell("code", "x = 1", 1), outcome, inline_figure)
    assert '<pre class="output">&lt;b&gt;\\x1b[31m&amp;amp;\n\tb&lt;/b&gt;</pre>' in page
    assert "→ x &lt;i&gt;" in page
    assert page.count("&quot;&gt;&lt;script&gt;alert(&quot;\\x1b&quot;)&lt;/script&gt;") == 2
    assert not {"b", "i", "script"} & set(ParsedPage(page).tags)


def test_the_list_names_every_lesson_with_its_minutes(capsys):
    assert main(["lessons"]) == 0
    output = capsys.readouterr().out
    for lesson in LESSONS:
        row = rf"^ *{lesson.number}  {re.escape(lesson.title)} +{minutes_of(lesson)}\b"
        assert re.search(row, output, re.MULTILINE), lesson.number


@pytest.fixture
def five(course, inside, monkeypatch):
    """Make a course of five lessons in three chapters, without routes."""
    for name in list(ROUTES):
        monkeypatch.delitem(ROUTES, name)
    names = ("01_a", "02_1_b", "02_2_c", "02_3_d", "03_e")
    course({name: f"# %% [markdown]\n# # 0 · Title {name[-1]}\n" for name in names})
    return inside


@pytest.mark.parametrize(
    ("done", "begun", "said"),
    [
        ("", "", "npformer lesson 1 begins the course."),
        ("01_a", "02_1_b", "npformer lesson 2.1 continues the course."),
        ("01_a 02_1_b 02_2_c 02_3_d 03_e", "", "All lessons of the course are done."),
    ],
)
def test_the_list_says_how_to_continue(done, begun, said, five, capsys):
    for name in done.split():
        save_progress(name, LessonProgress(0, 21, True))
    for name in begun.split():
        save_progress(name, LessonProgress(4, 23))
    assert main(["lessons"]) == 0
    output = capsys.readouterr().out
    assert said in output
    assert ("step 1 of 1\n" in output) == bool(begun), "the lesson has become shorter"


def test_the_list_has_the_sum_of_the_minutes_of_a_chapter(five, capsys):
    assert main(["lessons"]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[1:7]]
    parts = ["2 Embeddings 15", "2.1 Title b 5", "2.2 Title c 5", "2.3 Title d 5"]
    assert rows == ["1 Title a 5", *parts, "3 Title e 5"]


@pytest.mark.parametrize(
    ("which", "done", "opened", "said"),
    [
        ("1", "", "01_a", ""),
        ("1", "01_a", "01_a", ""),
        ("2.3", "02_1_b", "02_3_d", ""),
        ("02_3_d", "02_1_b", "02_3_d", ""),
        ("2", "", "02_1_b", "Lesson 2.1 (Title b) is the first that you have not finished."),
        ("2", "02_1_b 02_3_d", "02_2_c", "Lesson 2.2 (Title c) is the first that you have not finished."),
        ("2", "02_1_b 02_2_c 02_3_d", "02_1_b", "You have finished all of them, and this is lesson 2.1"),
    ],
)
def test_a_chapter_opens_its_first_unfinished_lesson(which, done, opened, said, five, capsys):
    save_progress("02_2_c", LessonProgress(1, 3))  # begun, but not finished
    for name in done.split():
        save_progress(name, LessonProgress(0, 1, True))
    assert main(["lesson", which, "--notebook"]) == 0
    assert [path.stem for path in five.glob("*.ipynb")] == [opened]
    output = capsys.readouterr().out
    assert ("Chapter 2 has 3 lessons." in output) == bool(said)
    assert said in output


@pytest.mark.parametrize(
    ("place", "opened"),
    [
        (None, "01_a"),
        (LessonProgress(3, 20), "02_1_b"),
        (LessonProgress(0, 20), "02_1_b"),
        (LessonProgress(3, 20, True), "02_1_b"),
        (LessonProgress(0, 20, True), "02_2_c"),
    ],
)
def test_lesson_without_a_number_resumes_or_opens_the_next(place, opened, five):
    if place is not None:
        save_progress("02_1_b", place)
    assert main(["lesson", "--notebook"]) == 0
    assert [path.stem for path in five.glob("*.ipynb")] == [opened]
