"""The index of the full-text search, and the page on which one searches.

The index holds the texts of the pages, split at their headings. The browser computes the ranking from it. A
page that is opened from a folder may load scripts but no data, so the index is a script that sets a constant.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from npformer.learn.course.glossary import all_terms
from npformer.learn.site.page import Page
from npformer.learn.site.search_words import STOP_WORDS, SYNONYMS
from npformer.learn.site.styles import STYLES, web_file

PATH = "search.html"
SCRIPTS = ("search_words.js", "search_counts.js", "search_snippet.js", "search_rank.js", "search.js")
HEADINGS = ("h1", "h2", "h3", "dt")
SKIPPED = ("script", "style", "nav", "svg", "noscript", "form")  # elements whose text is not text of the page
VOID = {"img", "br", "hr", "input", "meta", "link", "wbr"}
INLINE = {
    "a", "abbr", "b", "code", "em", "i", "span", "strong", "sub", "sup", "mark", "kbd", "math", "mi", "mn",
    "mo", "mrow", "msub", "msup", "msubsup", "mtext", "mstyle", "mover", "munder", "munderover", "mspace",
}  # fmt: skip
SOURCE = re.compile(r'<details class="source">.*?</details>', re.DOTALL)  # the folded code of the reference
LONGEST = 20_000  # characters of a part

BODY = """\
<h1>Search</h1>
<form role="search" aria-label="All pages" class="search" action="search.html">
<label for="search-query">Words to search for</label>
<input type="search" id="search-query" name="q" autocomplete="off" spellcheck="false">
<button>Search</button>
</form>
<noscript><p>The search needs JavaScript.</p></noscript>
<p id="search-status" role="status"></p>
<ol id="search-results"></ol>
<script src="search-index.js"></script>
"""


@dataclass
class PageSection:
    """The text of a page between two headings.

    Args:
        id: The id of the heading, "" at the beginning of the page.
        heading: The text of the heading.
        text: The pieces of the text without those of code blocks.
        code: The pieces of code blocks.
    """

    id: str = ""
    heading: str = ""
    text: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The different words of the code."""
        return " ".join(dict.fromkeys(re.findall(r"[^\W\d]\w+", " ".join(self.code))))


def search_page(pages: Iterable[Page]) -> Page:
    """Return the page of the search, which carries the index of the given pages as an asset."""
    assets = {"search-index.js": search_index(pages).encode()}
    assets |= STYLES | {name: web_file(name) for name in SCRIPTS}
    scripts = "".join(f'<script src="{name}"></script>\n' for name in SCRIPTS)
    return Page(PATH, "Search", "Search", BODY + scripts, assets)


def search_index(pages: Iterable[Page]) -> str:
    """Return the script that sets the constant SEARCH_INDEX."""
    rows = [_row(page) for page in pages if page.path != PATH]
    chinese = {term.chinese: term.name for term in all_terms() if term.chinese}
    index = {"pages": rows, "synonyms": SYNONYMS | chinese, "stop": STOP_WORDS.split()}
    return f"const SEARCH_INDEX = {_json(index)};\n"


def _row(page: Page) -> list[Any]:
    """Return a page as [path, title, section, keywords, [[id, heading, text, words of code], ...]]."""
    parts = [[part.id, part.heading, _flat(part.text), part.words] for part in parts_of(page.body)]
    return [page.path, page.title, page.section, " ".join(page.keywords), parts]


def _flat(pieces: list[str]) -> str:
    return " ".join("".join(pieces).split())[:LONGEST]


def _json(value: object) -> str:
    """Return JSON that may stand in a script."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


def parts_of(body: str) -> list[PageSection]:
    """Split the body of a page at its headings."""
    reader = _Reader()
    reader.feed(SOURCE.sub("", body))
    reader.close()
    return [part for part in reader.parts if part.heading or "".join([*part.text, *part.code]).strip()]


class _Reader(HTMLParser):
    """Reads the text of HTML into parts. Folded source code and navigation are left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts = [PageSection()]
        self.skipped = 0  # the number of open elements from the outermost skipped one
        self.heading = ""  # the tag of the heading in which the reader is
        self.in_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a part at a heading, and skip what is not text of the page."""
        given = dict(attrs)
        if self.skipped:
            self.skipped += tag not in VOID
        elif tag in SKIPPED:
            self.skipped = 1
        elif tag in HEADINGS and (given.get("id") or tag == "h1"):
            self.parts.append(PageSection(given.get("id") or ""))
            self.heading = tag
        elif (
            given.get("id") and given.get("class") == "member"
        ):  # a method: its name, behind that of its class
            self.parts.append(PageSection(given["id"] or "", (given["id"] or "").replace(".", " . ")))
        elif tag == "pre":
            self.in_code = True
        elif tag == "msqrt":
            self.handle_data("√")
        elif tag not in INLINE:
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        """End a heading or a skipped element."""
        if self.skipped:
            self.skipped -= 1
        elif tag == self.heading:
            self.parts[-1].heading = " ".join(self.parts[-1].heading.split())
            self.heading = ""
        elif tag == "pre":
            self.in_code = False
        elif tag not in INLINE:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        """Add a piece of text."""
        if self.skipped:
            return
        if self.heading:
            self.parts[-1].heading += data
        elif self.in_code:
            self.parts[-1].code.append(data)
        else:
            self.parts[-1].text.append(re.sub(r"\s+", " ", data))
