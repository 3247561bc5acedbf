"""The guides: the documentation as pages, where the package is used from a checkout, which has docs/."""

import posixpath
import re
from collections.abc import Collection, Iterator
from html import escape, unescape
from pathlib import Path
from urllib.parse import unquote

from npformer.learn.course.lesson import Lesson
from npformer.learn.course.markup import markdown_html
from npformer.learn.site.glossary_page import GLOSSARY
from npformer.learn.site.html_text import plain_text, with_heading_ids
from npformer.learn.site.lesson_links import CONTENTS, page_of
from npformer.learn.site.page import Page

CHECKOUT = Path(__file__).parents[3]
START = "index.html"
READ_FIRST = "start-here.html"
# files of the repository, and the pages of the site that show the same
SAME = {
    "lessons": CONTENTS,
    "lessons/README.md": CONTENTS,
    "lessons/GLOSSARY.md": GLOSSARY,
    "figures/README.md": "gallery.html",
    "README.md": START,
}
IMAGE = re.compile(r'<img src="([^"]*)"')
LINK = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)  # the marks of computed parts
LINE = re.compile(r"L\d+")  # the place of a line in a file, which a page does not have


def guide_pages(
    lessons: Collection[Lesson], others: Collection[str] = (), checkout: Path = CHECKOUT
) -> Iterator[Page]:
    """Yield the page that says what to read first, and the other guides with their list in front.

    Args:
        lessons: The lessons of the site, which can be linked.
        others: The paths of the other pages, which can be linked, too.
        checkout: The folder that contains docs/. Without docs/, there are no guides.
    """
    files = sorted((checkout / "docs").glob("*.md"), key=lambda file: (file.name != "README.md", file.name))
    pages = {f"docs/{file.name}": _path_of(file) for file in files}
    pages |= {name: path for name, path in SAME.items() if path in others}
    pages |= {f"lessons/{lesson.path.name}": page_of(lesson) for lesson in lessons}
    for file in files:
        yield _guide(file, pages)


def _path_of(file: Path) -> str:
    """Return the path of the page of a file of the documentation."""
    if file.stem == "start-here":
        return READ_FIRST
    return "docs/index.html" if file.stem == "README" else f"docs/{file.stem}.html"


def _guide(file: Path, pages: dict[str, str]) -> Page:
    """Return the page of a file of the documentation."""
    path, assets = _path_of(file), dict[str, bytes]()
    body = with_heading_ids(markdown_html(COMMENT.sub("", file.read_text(encoding="utf-8"))))

    def image(found: re.Match[str]) -> str:
        source = file.parent / unquote(unescape(found[1]))
        assets[f"docs/{source.name}"] = source.read_bytes()
        address = posixpath.relpath(f"docs/{source.name}", posixpath.dirname(path) or ".")
        return f'<img loading="lazy" src="{escape(address)}"'

    def link(found: re.Match[str]) -> str:
        address, _, place = unescape(found[1]).partition("#")
        place = "" if LINE.fullmatch(place) else place
        if ":" in address or not address:
            return found[0]
        target = pages.get(posixpath.normpath(posixpath.join("docs", unquote(address))))
        if target is None:
            return found[2]  # a file of the repository that the site does not show
        relative = posixpath.relpath(target, posixpath.dirname(path) or ".")
        return f'<a href="{escape(relative + f"#{place}" * bool(place))}">{found[2]}</a>'

    body = LINK.sub(link, IMAGE.sub(image, body))
    title = re.search(r"<h1>(.*?)</h1>", body, re.DOTALL)
    name = plain_text(title[1]) if title else file.stem
    section = "Start" if path == READ_FIRST else "Guides"
    return Page(path, name, section, body, assets, (file.stem.replace("-", " "),))
