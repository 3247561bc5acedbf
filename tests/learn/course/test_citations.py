"""Citations of lessons: each lesson and chapter that a text cites exists, and files are named.

The rules are: "lesson 4.2" cites a lesson, "lesson 1" the only lesson of a chapter, and "chapter 4" a whole
chapter. A lesson names each lesson that it cites at least once by its file, such as `02_embeddings`.
"""

import re
from typing import NamedTuple

import pytest
from paths import ROOT

from npformer.learn.course.lesson import all_lessons

PACKAGE = ROOT / "npformer"
LESSONS = all_lessons()
NUMBER = r"\d+(?:\.\d+)?"
CITED = re.compile(
    rf"(?<!npformer )\b(lesson|chapter)s?\s+"
    rf"({NUMBER}(?:(?:\s*\([^()]*\))?(?:,|,?\s+(?:and|or|to))\s+{NUMBER})*)\b",
    re.IGNORECASE,
)
FILE = re.compile(r"`(\d\d_\w+)`")
NEXT = re.compile(rf"\*\*Next\*\*[:,] lesson ({NUMBER}) \(`(\w+)`\)")
PAGES = [
    *(
        path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"
    ),  # earlier versions had other lessons
    *(ROOT / "docs").glob("*.md"),
    *(PACKAGE / "learn").rglob("*.py"),
    *(PACKAGE / "cli").glob("*.py"),
]
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


class Citation(NamedTuple):
    """A citation: "lesson" or "chapter", and the number."""

    kind: str
    number: str

    @property
    def chapter(self):
        """The number of the chapter."""
        return int(self.number.split(".")[0])

    @property
    def exists(self):
        """Whether there is such a lesson or chapter."""
        if self.kind == "chapter":
            return self.number in {str(lesson.chapter) for lesson in LESSONS}
        return self.number in {lesson.number for lesson in LESSONS}


def citations(text):
    """Return the citations in a text."""
    return [
        Citation(match[1].lower(), number)
        for match in CITED.finditer(text)
        for number in re.findall(NUMBER, re.sub(r"\([^()]*\)", "", match[2]))
    ]


def missing(text):
    """Return the citations of lessons and chapters that do not exist."""
    return [citation for citation in citations(text) if not citation.exists]


def missing_files(text):
    """Return the names of lessons in backticks that are not the names of files."""
    return [name for name in FILE.findall(text) if name not in {lesson.name for lesson in LESSONS}]


def prose_of(lesson):
    return "\n\n".join(cell.text for cell in lesson.cells if cell.kind == "prose")


@each_lesson
def test_each_lesson_that_a_lesson_cites_exists(lesson):
    text = "\n".join(cell.text for cell in lesson.cells)
    assert missing(text) == []
    assert missing_files(text) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_lesson_that_a_page_cites_exists(path):
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'"\s*\n\s*f?"', "", text)  # a text in several lines of Python
    assert missing(text) == []
    assert missing_files(text) == []


@each_lesson
def test_a_lesson_names_the_files_of_the_lessons_that_it_cites(lesson):
    prose = prose_of(lesson)
    named = FILE.findall(prose)
    cited = {citation.number for citation in citations(prose) if citation.kind == "lesson"}
    others = [other for other in LESSONS if other.number in cited - {lesson.number}]
    assert [other.name for other in others if other.name not in named] == []


@each_lesson
def test_a_lesson_ends_with_the_next_one(lesson):
    end = prose_of(lesson).split("\n\n")[-1]
    after = next(iter(LESSONS[LESSONS.index(lesson) + 1 :]), None)
    if after is not None:
        assert end.startswith("**Next**")
        found = NEXT.match(" ".join(end.split()))
        assert found, end
        assert (found[1], found[2]) == (after.number, after.name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See lesson 4.2 and chapter 5.", ["lesson 4.2", "chapter 5"]),
        ("Lessons 1, 2 and 3; chapters 4\nto 6", [*(f"lesson {n}" for n in "123"), "chapter 4", "chapter 6"]),
        ("lessons 1 (`01_words_to_ids`) and\n5.2 (`05_2_x`).", ["lesson 1", "lesson 5.2"]),
        ("`npformer lesson 4`, section 3.2, lesson_4, the lesson, 4 chapters", []),
    ],
)
def test_citations_are_found(text, expected):
    assert [" ".join(citation) for citation in citations(text)] == expected


@pytest.mark.parametrize(
    ("citation", "exists"),
    [
        ("lesson 1", True),
        ("lesson 1.1", False),
        ("chapter 1", True),
        ("chapter 77", False),
        ("chapter 4.1", False),
    ],
)
def test_a_citation_is_of_a_lesson_or_of_a_whole_chapter(citation, exists):
    assert Citation(*citation.split()).exists == exists
    assert missing_files("see `01_words_to_ids`") == []
    assert missing_files("see `01_words_to_id`") == ["01_words_to_id"]
