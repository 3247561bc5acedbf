"""Minimal pages of the lessons for the tests of the search, and pages in the frame of the site."""

import functools
import html
import re

from course import LESSONS

from npformer.learn.course.markup import prose
from npformer.learn.site.frame import SCRIPT, STYLE, WEB, Frame, entrances_of
from npformer.learn.site.html_text import with_heading_ids
from npformer.learn.site.lesson_links import page_of
from npformer.learn.site.page import Page


@functools.cache
def lesson_pages():
    """Return a page for each lesson: its prose, and its code without outputs."""
    pages = []
    for lesson in LESSONS:
        cells = [
            prose(cell.text) if cell.kind == "prose" else f'<pre class="code">{html.escape(cell.text)}</pre>'
            for cell in lesson.cells
        ]
        body = with_heading_ids("\n".join(cells))
        title = f"{lesson.number} · {re.sub(r'[$`]', '', lesson.title)}"
        pages.append(Page(page_of(lesson), title, "Lessons", body))
    return pages


def write_framed(pages, folder):
    """Write pages in the frame of the site into a folder."""
    frame = Frame(entrances_of(pages), has_search=True)
    files = {name: (WEB / name).read_bytes() for name in (STYLE, SCRIPT)}
    for page in pages:
        files |= page.assets
        files[page.path] = frame.around(page).encode()
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
