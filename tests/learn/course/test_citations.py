"""Citations of lessons: each lesson and chapter that a text cites exists, and files are named.

The rules are: "lesson 4.2" cites a lesson, "lesson 25" the only lesson of a chapter, and "chapter 4" a whole
chapter. A lesson names each lesson that it cites at least once by its file, such as `02_1_embeddings`.
"""

import re
from typing import NamedTuple

import pytest
from course import CHAPTERS, LESSONS, each_lesson, prose_of
from paths import ROOT

from npformer.learn.course.routes import next_on, routes_of

PACKAGE = ROOT / "npformer"
NUMBER = r"\d+(?:\.\d+)?"
CITED = re.compile(
    rf"(?<!npformer )\b(lesson|chapter)s?\s+"
    rf"({NUMBER}(?:(?:\s*\([^()]*\))?(?:,|,?\s+(?:and|or|to))\s+{NUMBER})*)\b",
    re.IGNORECASE,
)
NAMES, NUMBERS = ({getattr(lesson, key) for lesson in LESSONS} for key in ("name", "number"))
FILE = re.compile(r"`(\d\d_\w+)`")
NEXT = re.compile(rf": lesson ({NUMBER}) \(`(\w+)`\)")
PAGES = [
    # without the page about earlier versions, which had other lessons
    *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
    *(ROOT / "docs").glob("*.md"),
    *(PACKAGE / "learn").rglob("*.py"),
    *(PACKAGE / "cli").glob("*.py"),
]


class Citation(NamedTuple):
    """A citation: "lesson" or "chapter", and the number."""

    kind: str
    number: str

    @property
    def exists(self):
        """Whether there is such a lesson or chapter."""
        return self.number in (NUMBERS if self.kind == "lesson" else map(str, CHAPTERS))


def citations(text):
    """Return the citations in a text."""
    return [
        Citation(match[1].lower(), number)
        for match in CITED.finditer(text)
        for number in re.findall(NUMBER, re.sub(r"\([^()]*\)", "", match[2]))
    ]


def missing(text):
    """Return the citations of lessons and chapters that do not exist, and the names of files in backticks."""
    wrong = [" ".join(citation) for citation in citations(text) if not citation.exists]
    return wrong + [name for name in FILE.findall(text) if name not in NAMES]


@each_lesson
def test_each_lesson_that_a_lesson_cites_exists(lesson):
    assert missing("\n".join(cell.text for cell in lesson.cells)) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_lesson_that_a_page_cites_exists(path):
    text = path.read_text(encoding="utf-8")
    assert missing(re.sub(r'"\s*\n\s*f?"', "", text)) == []  # a text in several lines of Python


@each_lesson
def test_a_lesson_names_the_files_of_the_lessons_that_it_cites(lesson):
    prose = prose_of(lesson)
    named = FILE.findall(prose)
    cited = {citation.number for citation in citations(prose) if citation.kind == "lesson"}
    others = [other for other in LESSONS if other.number in cited - {lesson.number}]
    assert [other.name for other in others if other.name not in named] == []


@each_lesson
def test_a_lesson_ends_with_the_next_one_of_each_of_its_routes_and_of_all_lessons(lesson):
    end = " ".join(prose_of(lesson).split("\n\n")[-1].split())
    after = next(iter(LESSONS[LESSONS.index(lesson) + 1 :]), None)
    on_routes = {route.title: next_on(route, lesson) for route in routes_of(lesson)}
    expected = [other for other in dict.fromkeys([*on_routes.values(), after]) if other]
    if expected:
        assert end.startswith("**Next**")
        assert NEXT.findall(end) == [(other.number, other.name) for other in expected]
    for title, other in on_routes.items():
        if other and len(expected) > 1:
            assert re.search(rf"\bon (the {title}|both routes): lesson {other.number} ", end, re.IGNORECASE)
