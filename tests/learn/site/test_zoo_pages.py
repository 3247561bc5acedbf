"""The bug zoo shows the symptom, the program and the hints of each bug, and never its solution."""

import re

import pytest

from npformer.learn.bugs import BUGS
from npformer.learn.bugs.cases import ALL
from npformer.learn.site.course_pages import bug_page, zoo_pages

QUICK = ("linear", "embedding")


@pytest.fixture(scope="module", params=QUICK)
def bug(request):
    return BUGS.find(request.param)


@pytest.fixture(scope="module")
def files(bug):
    return bug_page(bug)


@pytest.fixture(scope="module")
def page(bug, files):
    return shown(files[f"zoo/{bug.number:02}.md"])


def shown(document):
    """Return a document on one line, without the escapes of Markdown."""
    return " ".join(re.sub(r"\\([\\`*_\[\]$<>#|~{}])", r"\1", document.decode()).split())


def spoilers(bug, page):
    """Return the lines of the repair and the sentences of the story that a page shows."""
    lines = [" ".join(line[1:].split()) for line in bug.repair.splitlines() if line.startswith("+")]
    code = " ".join(bug.code().split())
    sentences = [" ".join(each.split()) for each in re.split(r"(?<=\.)\s", bug.story) if "{" not in each]
    wrong = [line for line in lines if line and page.count(line) > code.count(line)]
    return wrong + [each for each in sentences if len(each) > 20 and each in page]


def test_a_page_has_the_symptom_with_its_numbers(bug, page, files):
    run = bug.train(bug.buggy())
    assert " ".join(bug.symptom.split()).partition("{")[0] in page
    assert "{" not in page[page.index("## The symptom") : page.index("`````{figure}")]
    assert f"{run.numbers()['last']:.3g} with the bug" in page
    assert files[f"zoo/{bug.number:02}.svg"].startswith(b"<?xml")


def test_a_page_has_the_program_with_its_bug_and_the_command(bug, page):
    assert " ".join(bug.code().split()) in page
    assert f"npformer bugs start {bug.number} npformer bugs check" in page


def test_the_hints_are_folded(bug, page):
    assert page.count("<details") == len(bug.hints)
    for number, hint in enumerate(bug.hints, 1):
        begin = page.index(f"<summary>Hint {number} of {len(bug.hints)}</summary>")
        assert " ".join(hint.split()) in page[begin : page.index("</details>", begin)]


def test_a_page_has_no_solution(bug, page):
    assert spoilers(bug, page) == []
    assert spoilers(bug, f"{page} {' '.join(bug.repaired_code().split())}"), "a solution would be found"


@pytest.mark.nightly
def test_all_pages():
    files = zoo_pages()
    for bug in ALL:
        assert f"/zoo/{bug.number:02}.md" in files["zoo/index.md"].decode()
        assert spoilers(bug, shown(files[f"zoo/{bug.number:02}.md"])) == [], bug.name
