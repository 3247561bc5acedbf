"""A lesson as a notebook and as a web page, and the commands `lesson` and `lessons`."""

import base64
import json
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from paths import ROOT

from npformer.cli.main import main
from npformer.learn.course import lesson as lesson_module
from npformer.learn.course.execute import Outcome
from npformer.learn.course.export import INSTALLATION, PACKAGE
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Cell, find_lesson
from npformer.learn.course.markup import cell_html, inline_figure, prose
from npformer.learn.course.pictures import Picture
from npformer.learn.course.progress import LessonProgress, save_progress
from npformer.plots import curves

LESSON = find_lesson("5.1")


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_the_notebook_contains_every_cell(inside, capsys):
    assert main(["lesson", LESSON.number, "--notebook"]) == 0
    assert capsys.readouterr().out.startswith(f"wrote {LESSON.name}.ipynb: open it with")
    notebook = json.loads((inside / f"{LESSON.name}.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = LESSON.cells
    kinds = {"prose": "markdown", "code": "code"}
    installation, *rest = notebook["cells"]
    assert f"%pip install --quiet {PACKAGE}" in "".join(installation["source"])
    assert [cell["cell_type"] for cell in rest] == [kinds[cell.kind] for cell in cells]
    # Markdown in a folded answer needs an empty line before it
    sources = ["".join(cell["source"]).replace("</summary>\n\n", "</summary>\n") for cell in rest]
    sources = [source.replace("\n\n</details>", "\n</details>") for source in sources]
    assert sources == [cell.text for cell in cells]
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", name) for name in ids)
    for cell in notebook["cells"]:
        extra = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | extra
    nbformat.validate(notebook)


def test_the_notebook_stores_outputs_and_figures(inside, capsys):
    assert main(["lesson", LESSON.number, "--notebook", "a.ipynb"]) == 0
    cells = json.loads((inside / "a.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    printed = ["".join(output["text"]) for output in outputs if output["output_type"] == "stream"]
    assert any("q1 · k1 = 112.0000\n" in text for text in printed)
    drawn = [output["data"] for output in outputs if output["output_type"] == "display_data"]
    assert len(drawn) == 2
    assert all(base64.b64decode(data["image/png"]).startswith(b"\x89PNG") for data in drawn)
    assert all(f"{data['text/plain']}\n" in printed for data in drawn)


def test_the_first_cell_of_a_notebook_installs_npformer_only_where_it_is_missing(monkeypatch):
    """It is run as Jupyter runs it, with the line that begins with % as a call."""
    code = re.sub(r"%pip (.*)", r"pip('\1')", INSTALLATION)
    called = []
    exec(code, {"pip": called.append})
    assert called == []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(code, {"pip": called.append})
    assert called == [f"install --quiet {PACKAGE}"]


def test_the_wheel_that_notebooks_install_is_the_one_that_is_built():
    with open(ROOT / "pyproject.toml", "rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert f"npformer-{version}-py3-none-any.whl" == PACKAGE


def test_a_notebook_of_a_lesson_that_fails_is_not_written(folded, capsys):
    path = folded / "lessons" / "90_folded.py"
    path.write_text("# %%\nx = 1\n# %%\nx / 0\n", encoding="utf-8")
    assert main(["lesson", "90", "--notebook"]) == 2
    message = "npformer: no notebook was written, since a cell fails: ZeroDivisionError: division by zero; "
    assert capsys.readouterr().err == message + "90_folded.py, line 4: x / 0\n"
    assert list(folded.glob("*.ipynb")) == []


def test_an_existing_notebook_is_not_overwritten(inside, capsys):
    (inside / "mine.ipynb").write_text("work")
    assert main(["lesson", LESSON.number, "--notebook", "mine.ipynb"]) == 2
    assert "may contain your work" in capsys.readouterr().err
    assert (inside / "mine.ipynb").read_text() == "work"


class Page(HTMLParser):
    """A parser that collects a page's tags and external resources, and checks that tags close in order."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.open, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "srcset", "data", "poster")]
        if tag == "link":
            self.loads.append(str(attrs))
        if tag not in ("meta", "img", "br", "hr", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    assert main(["lesson", LESSON.number, "--html", str(path)]) == 0
    return path.read_text(encoding="utf-8")


def test_the_page_loads_nothing(page):
    parsed = Page(page)
    assert parsed.open == []
    assert parsed.loads
    assert all(load.startswith("data:image/png;base64,") for load in parsed.loads)
    assert "script" not in parsed.tags
    named = re.sub(r'<a href=[^>]*>|xmlns="[^"]*"', "", page)  # a link, the name of a language: not loaded
    assert not re.search(r"url\(|@import|https?://", named)


def test_the_page_contains_outputs_figures_and_formulas(page):
    assert page.count("<figure>") == 3  # the map of the course, and two of the lesson
    assert "q1 · k1 = 112.0000" in page
    assert "→ q (2, 64) ∙ k (2, 64) ∙ v (2, 64)" in page
    assert page.count('<math display="block"') == 3
    assert "<msqrt>" in page


def test_formulas_and_prose_are_escaped():
    assert "<mo>&lt;</mo>" in prose("$a < b$")
    assert "<script>" not in prose("<script>alert(1)</script>")


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
# %% tags=["check"]
print("checked")

assert x == 1
# %% tags=["plot"]
y = 2
"""


@pytest.fixture
def folded(inside, monkeypatch):
    """Write a lesson with formulas, an answer and folded cells."""
    (inside / "lessons").mkdir()
    (inside / "lessons" / "90_folded.py").write_text(FOLDED, encoding="utf-8")
    monkeypatch.setattr(lesson_module, "CHECKOUT", inside / "lessons")
    return inside


def test_a_page_typesets_formulas_and_folds_answers_and_cells(folded, capsys):
    assert main(["lesson", "90", "--html"]) == 0
    page = (folded / "90_folded.html").read_text(encoding="utf-8")
    tags = Page(page).tags
    assert tags.count("math") == 3
    assert "<mfrac><mrow><msub><mi>a</mi><mn>1</mn></msub></mrow><mrow><mn>2</mn></mrow></mfrac>" in page
    assert 'display="block"' in page
    assert "costs 5 $, and <code>$b$</code> is code" in page
    assert "<details><summary>Answer</summary>\n<p>It is <em>small</em>.</p>\n</details>" in page
    assert '<details class="folded"><summary>check: 2 lines</summary>' in page
    assert '<details class="folded"><summary>plot: 1 line</summary>' in page
    output = page.index('<pre class="output">checked</pre>')
    assert page.rindex("</details>", 0, output) > page.rindex("<details", 0, output), "output is not folded"
    assert "→ y = 2" not in page


def test_a_notebook_keeps_formulas_and_folds_answers_and_cells(folded, capsys):
    assert main(["lesson", "90", "--notebook"]) == 0
    notebook = json.loads((folded / "90_folded.ipynb").read_text(encoding="utf-8"))
    opening, code, check, plot = notebook["cells"][-4:]
    text = "".join(opening["source"])
    assert "The sum $\\frac{a_1}{2}$ costs 5 \\$" in text
    assert "$$\nx = \\sqrt{y}\n$$" in text
    assert "<details><summary>Answer</summary>\n\nIt is *small*.\n\n</details>" in text
    assert code["metadata"] == {}
    for cell, tag in ((check, "check"), (plot, "plot")):
        assert cell["metadata"]["tags"] == [tag]
        assert cell["metadata"]["jupyter"] == {"source_hidden": True}


def test_a_formula_with_a_mistake_is_named(folded, capsys):
    path = folded / "lessons" / "90_folded.py"
    path.write_text("# %% [markdown]\n# Now $\\foo{x}$.\n", encoding="utf-8")
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
    assert not {"b", "i", "script"} & set(Page(page).tags)


def test_the_number_may_follow_the_option(inside, capsys):
    assert main(["lesson", "--notebook", LESSON.number]) == 0
    assert (inside / f"{LESSON.name}.ipynb").exists()


def test_a_page_of_a_lesson_that_fails_is_not_written(inside, monkeypatch, capsys):
    (inside / "lessons").mkdir()
    (inside / "lessons" / "90_fails.py").write_text("# %%\nx = 1\n# %%\nx / 0\n", encoding="utf-8")
    monkeypatch.setattr(lesson_module, "CHECKOUT", inside / "lessons")
    assert main(["lesson", "90", "--html"]) == 2
    assert "90_fails.py, line 4: x / 0" in capsys.readouterr().err
    assert not (inside / "90_fails.html").exists()
    # without a terminal the lesson runs to its end, and the exit status shows the failure
    assert main(["lesson", "90"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["99"], ["attentoin"], ["3", "--html", "no/such/folder/x.html"]])
def test_a_mistake_prints_one_sentence_and_gives_status_2(arguments, capsys):
    assert main(["lesson", *arguments]) == 2
    output = capsys.readouterr().err
    assert output.startswith("npformer: ")
    assert "Traceback" not in output


def test_the_list_names_every_lesson(capsys):
    assert main(["lessons"]) == 0
    output = capsys.readouterr().out
    lessons = lesson_module.all_lessons()
    for lesson in lessons:
        assert re.search(
            rf"^ *{lesson.number}  {re.escape(lesson.title)} +{minutes_of(lesson)}\b", output, re.M
        )
    assert f"npformer lesson {lessons[0].number} begins the course." in output


def test_the_list_says_how_to_continue(capsys):
    lessons = lesson_module.all_lessons()
    save_progress(lessons[0].name, LessonProgress(0, 21, True))
    save_progress(lessons[1].name, LessonProgress(4, 23))
    assert main(["lessons"]) == 0
    assert f"npformer lesson {lessons[1].number} continues the course." in capsys.readouterr().out
    for lesson in lessons:
        save_progress(lesson.name, LessonProgress(0, 20, True))
    assert main(["lessons"]) == 0
    assert "All lessons are done." in capsys.readouterr().out


@pytest.fixture
def course(inside, monkeypatch):
    """Make a course of five lessons in three chapters."""
    (inside / "lessons").mkdir()
    for name in ("01_a", "02_1_b", "02_2_c", "02_3_d", "03_e"):
        text = f"# %% [markdown]\n# # 0 · Title {name[-1]}\n"
        (inside / "lessons" / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(lesson_module, "CHECKOUT", inside / "lessons")
    monkeypatch.setattr(lesson_module, "INSTALLED", inside)
    return inside


def test_the_list_has_the_sum_of_the_minutes_of_a_chapter(course, capsys):
    assert main(["lessons"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:7]]
    assert rows == [
        ["1", "Title", "a", "5"],
        ["2", "Embeddings", "15"],
        ["2.1", "Title", "b", "5"],
        ["2.2", "Title", "c", "5"],
        ["2.3", "Title", "d", "5"],
        ["3", "Title", "e", "5"],
    ]


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
def test_a_chapter_opens_its_first_unfinished_lesson(which, done, opened, said, course, capsys):
    save_progress("02_2_c", LessonProgress(1, 3))  # begun, but not finished
    for name in done.split():
        save_progress(name, LessonProgress(0, 1, True))
    assert main(["lesson", which, "--notebook"]) == 0
    assert [path.stem for path in course.glob("*.ipynb")] == [opened]
    output = capsys.readouterr().out
    assert ("Chapter 2 has 3 lessons. " in output) == bool(said)
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
def test_lesson_without_a_number_resumes_or_opens_the_next(place, opened, course):
    if place is not None:
        save_progress("02_1_b", place)
    assert main(["lesson", "--notebook"]) == 0
    assert [path.stem for path in course.glob("*.ipynb")] == [opened]


def test_a_built_package_contains_the_lessons(tmp_path):
    """build_py, which collects the files of a wheel, puts the lessons where all_lessons finds them."""
    pytest.importorskip("setuptools")
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path / "built")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    code = "from npformer.learn.course.lesson import all_lessons; print(*[x.path for x in all_lessons()])"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "built",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert {Path(path).parent for path in found} == {tmp_path / "built/npformer/learn/course/lessons"}
    assert {Path(path).name: Path(path).read_bytes() for path in found} == {
        path.name: path.read_bytes() for path in (ROOT / "lessons").glob("[0-9]*.py")
    }
