"""The bug zoo shows the symptom, the program and the hints of each bug, and never its solution."""

import re
from dataclasses import replace
from html import unescape

import pytest

from npformer.learn.bugs import BUGS
from npformer.learn.bugs.cases import ALL
from npformer.learn.site.zoo_pages import bug_page, zoo_pages

QUICK = ("linear", "embedding")


@pytest.fixture(scope="module", params=QUICK)
def bug(request):
    return BUGS.find(request.param)


@pytest.fixture(scope="module")
def page(bug):
    return bug_page(bug)


def text_of(html):
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())


def spoilers(bug, page):
    """Return the lines of the repair and the sentences of the story that a page shows."""
    shown = text_of(page.body)
    lines = [" ".join(line[1:].split()) for line in bug.repair.splitlines() if line.startswith("+")]
    code = " ".join(bug.code().split())
    sentences = [" ".join(each.split()) for each in re.split(r"(?<=\.)\s", bug.story) if "{" not in each]
    wrong = [line for line in lines if line and shown.count(line) > code.count(line)]
    return wrong + [each for each in sentences if len(each) > 20 and each in shown]


def test_a_page_has_the_symptom_with_its_numbers(bug, page):
    run = bug.train(bug.buggy())  # again: a training gives the same numbers
    shown = text_of(page.body)
    assert " ".join(bug.symptom.split()).partition("{")[0] in shown
    assert "{" not in page.body[: page.body.index('id="program"')]
    assert f"{run.numbers()['last']:.3g} with the bug" in shown
    assert page.assets[f"zoo/{bug.number:02}.png"][:4] == b"\x89PNG"


def test_a_page_has_the_program_with_its_bug_and_the_command(bug, page):
    shown = text_of(page.body)
    assert " ".join(bug.code().split()) in shown
    assert f"npformer bugs start {bug.number} npformer bugs check" in shown


def test_the_hints_are_folded(bug, page):
    assert page.body.count("<details>") == len(bug.hints)
    for number, hint in enumerate(bug.hints, 1):
        begin = page.body.index(f"<summary>Hint {number} of {len(bug.hints)}</summary>")
        assert text_of(page.body[begin : page.body.index("</details>", begin)]).endswith(
            hint.replace("`", "")
        )


def test_a_page_has_no_solution(bug, page):
    assert spoilers(bug, page) == []
    told = replace(page, body=f"{page.body}<p>{bug.repaired_code()}</p>")
    assert spoilers(bug, told), "a solution would be found"


@pytest.mark.nightly
def test_all_pages():
    overview, *pages = zoo_pages()
    assert len(pages) == len(ALL)
    for bug, page in zip(ALL, pages, strict=True):
        assert page.path == f"zoo/{bug.number:02}.html"
        assert f'href="{bug.number:02}.html"' in overview.body
        assert spoilers(bug, page) == [], bug.name
