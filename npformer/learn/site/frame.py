"""The frame of every page: head, navigation, the lessons of the course, previous and next, footer."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from pathlib import Path

from npformer.learn.course.chapters import TITLES
from npformer.learn.course.lesson import Lesson
from npformer.learn.site.html_text import headings_of
from npformer.learn.site.lesson_links import CONTENTS, page_of
from npformer.learn.site.page import Page
from npformer.version import __version__

WEB = Path(__file__).parent / "web"
STYLE, SCRIPT = "style.css", "site.js"
SEARCH = "search.html"
# the entries of the navigation in order: those without a page are left out
SECTIONS = ("Start", "Lessons", "Explorer", "Gallery", "Bug zoo", "Guides", "Reference", "Glossary")
CURRENT = ' aria-current="true"'
# the path of the first page of a section that does not begin with its first page
ENTRANCES = {"Lessons": CONTENTS, "Bug zoo": "zoo/index.html", "Reference": "reference/index.html"}


@dataclass(frozen=True)
class Frame:
    """The frame of the pages of a site.

    Args:
        entrances: The path of the first page of each section that the site has.
        lessons: The lessons of the site, in order.
        has_search: Whether the site has the page of the search.
    """

    entrances: Mapping[str, str]
    lessons: Sequence[Lesson] = field(default_factory=list)
    has_search: bool = False

    def around(self, page: Page) -> str:
        """Return the whole HTML of a page."""
        lesson = next((each for each in self.lessons if page_of(each) == page.path), None)
        wide = " with-course" if lesson else ""
        styles = [STYLE, *(path for path in page.assets if path.endswith(".css"))]
        links = "\n".join(f'<link rel="stylesheet" href="{_to(path, page)}">' for path in styles)
        site = "" if page.title == "npformer" else " · npformer"
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(page.title)}{site}</title>
{links}
<script src="{_to(SCRIPT, page)}"></script>
</head>
<body>
<a class="skip" href="#main">Go to the text</a>
{self._header(page)}
<div class="page{wide}">
{self._course(page, lesson)}<main id="main" tabindex="-1">
{_with_scrolling_tables(page.body)}
{self._neighbours(page, lesson)}</main>
</div>
<footer><p>npformer {__version__}. This site was written by <code>npformer site</code>.</p></footer>
</body>
</html>
"""

    def _header(self, page: Page) -> str:
        """Return the name of the site, the sections, the search and the choice of light or dark."""
        entries = "\n".join(
            f'<li><a href="{_to(self.entrances[section], page)}"'
            f"{CURRENT * (section == page.section)}>{section}</a></li>"
            for section in SECTIONS
            if section in self.entrances
        )
        home = _to(self.entrances.get("Start", "index.html"), page)
        return f"""<header>
<a class="brand" href="{home}">npformer</a>
<nav aria-label="Site"><ul>
{entries}
</ul></nav>
{self._search(page)}<label class="theme"><span class="spoken-only">Colours</span>
<select id="theme"><option value="">System</option><option value="light">Light</option>
<option value="dark">Dark</option></select></label>
</header>"""

    def _search(self, page: Page) -> str:
        if not self.has_search or page.path == SEARCH:  # whose own form is larger
            return ""
        return (
            f'<form role="search" action="{_to(SEARCH, page)}"><input type="search" name="q" '
            'aria-label="Search the site" placeholder="Search" autocomplete="off"></form>\n'
        )

    def _course(self, page: Page, lesson: Lesson | None) -> str:
        """Return the chapters, the lessons of the present chapter, and the headings of the present lesson."""
        if lesson is None:
            return ""
        parts = []
        for chapter, group in groupby(self.lessons, lambda each: each.chapter):
            lessons = list(group)
            title = f"{chapter} · {escape(TITLES[chapter])}"
            if chapter != lesson.chapter:
                parts.append(f'<li><a href="{_to(page_of(lessons[0]), page)}">{title}</a></li>')
                continue
            inner = "\n".join(_entry(each, each == lesson, page) for each in lessons)
            parts.append(f'<li class="open"><b>{title}</b>\n<ol>\n{inner}\n</ol></li>')
        rows = "\n".join(parts)
        return f"""<nav class="course" aria-label="Course"><details><summary>Contents of the course</summary>
<ol>
{rows}
</ol>
</details></nav>
"""

    def _neighbours(self, page: Page, lesson: Lesson | None) -> str:
        """Return the links to the lesson before and the lesson after."""
        if lesson is None:
            return ""
        index = self.lessons.index(lesson)
        links = []
        for step, rel, word in ((-1, "prev", "Previous"), (1, "next", "Next")):
            if 0 <= index + step < len(self.lessons):
                other = self.lessons[index + step]
                links.append(
                    f'<a rel="{rel}" href="{_to(page_of(other), page)}"><small>{word}</small> '
                    f"{other.number} {escape(other.title)}</a>"
                )
        return f'<nav class="neighbours" aria-label="Neighbouring lessons">{"".join(links)}</nav>\n'


def _entry(lesson: Lesson, is_shown: bool, page: Page) -> str:
    """Return the entry of a lesson in the list of its chapter. That of the shown lesson has its headings."""
    current = ' aria-current="page"' * is_shown
    link = f'<a href="{_to(page_of(lesson), page)}"{current}>{lesson.number} {escape(lesson.title)}</a>'
    if not is_shown:
        return f"<li>{link}</li>"
    headings = "\n".join(
        f'<li><a href="#{id}">{escape(text)}</a></li>' for id, text in headings_of(page.body)
    )
    return f"<li>{link}\n<ul>\n{headings}\n</ul></li>" if headings else f"<li>{link}</li>"


def _with_scrolling_tables(html: str) -> str:
    """Put every table into an element that scrolls where the table is wider than the page."""
    return html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def _to(path: str, page: Page) -> str:
    """Return the address of a file of the site, relative to a page."""
    return posixpath.relpath(path, posixpath.dirname(page.path) or ".")


def entrances_of(pages: Sequence[Page]) -> dict[str, str]:
    """Return the path of the first page of each section."""
    first: dict[str, str] = {}
    for page in pages:
        first.setdefault(page.section, page.path)
    return first | {
        name: path for name, path in ENTRANCES.items() if any(page.path == path for page in pages)
    }
