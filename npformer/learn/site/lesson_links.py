"""The addresses of lessons on the site, and links to them wherever the prose names a lesson or a chapter."""

import re
from collections.abc import Mapping
from html import escape

from npformer.learn.course.chapters import TITLES
from npformer.learn.course.lesson import Lesson
from npformer.learn.site.html_text import replace_text

FILE = r"\d\d_(?:\d_)?\w+"
NUMBER = r"\d+(?:\.\d+)?"
# "lesson 4.4, <code>04_4_query_key_and_value</code>" or "lesson 4.4 (<code>...</code>)": the file is left out
NAMED = re.compile(
    rf"(?P<word>[Ll]esson\s+{NUMBER})(?:,\s+<code>(?P<plain>{FILE})</code>|\s+\(<code>(?P<bracketed>{FILE})</code>\))"
)
ALONE = re.compile(rf"<code>(?P<name>{FILE})</code>")
NUMBERS = re.compile(rf"\b[Ll]essons?\s+{NUMBER}(?:(?:,\s+|\s+and\s+|\s+or\s+|\s+to\s+|–){NUMBER})*")
CHAPTERS = re.compile(r"\b[Cc]hapters?\s+\d+(?:(?:,\s+|\s+and\s+|\s+or\s+|\s+to\s+|–)\d+)*(?![\d.]*\d)")
NOT_IN = ("a", "code", "pre", "div", "math", "h1", "summary")
CONTENTS = "lessons/index.html"
REPOSITORY = "https://github.com/npformer/npformer"  # setup.py has it for the metadata
PUBLISHED = "https://npformer.github.io/npformer"  # where the project's workflow publishes the site


def page_of(lesson: Lesson) -> str:
    """Return the path of the page of a lesson, such as lessons/05_1.html or lessons/01.html."""
    return f"lessons/{file_of(lesson)}"


def file_of(lesson: Lesson) -> str:
    """Return the name of the page of a lesson in the folder lessons/."""
    part = "" if lesson.part is None else f"_{lesson.part}"
    return f"{lesson.chapter:02}{part}.html"


def link_lessons(html: str, names: Mapping[str, str], own: Lesson) -> str:
    """Link every lesson and chapter that the HTML of a lesson names, except the lesson itself.

    Args:
        html: The HTML of a page in the folder lessons/.
        names: The file names of the pages by the names and by the numbers of the lessons.
        own: The lesson of the page.
    """

    def link(name: str, text: str) -> str:
        if name not in names or name in (own.name, own.number):
            return text
        return f'<a href="{names[name]}">{text}</a>'

    html = NAMED.sub(lambda found: link(found["plain"] or found["bracketed"], found["word"]), html)
    html = ALONE.sub(lambda found: link(found["name"], found[0]), html)

    def numbers(found: re.Match[str]) -> str:
        return re.sub(NUMBER, lambda number: link(number[0], number[0]), found[0])

    def chapters(found: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda number: _chapter_link(number[0]), found[0])

    return replace_text(html, lambda text: CHAPTERS.sub(chapters, NUMBERS.sub(numbers, text)), NOT_IN)


def _chapter_link(number: str) -> str:
    """Return the number of a chapter as a link to the contents, with its title."""
    if int(number) not in TITLES:
        return number
    return f'<a href="index.html#chapter-{number}" title="{escape(TITLES[int(number)])}">{number}</a>'
