"""Changes to finished HTML: its text outside of certain elements, the ids of headings, and its links."""

import re
import unicodedata
from collections.abc import Callable, Collection
from html import unescape

PIECES = re.compile(r"<!--.*?-->|<[^>]*>|[^<]+", re.DOTALL)
NAME = re.compile(r"</?([A-Za-z][\w-]*)")
VOID = {"img", "br", "hr", "input", "meta", "link", "wbr"}  # elements without an end tag
HEADING = re.compile(r"<h(?P<level>[23])>(?P<text>.*?)</h(?P=level)>", re.DOTALL)


def replace_text(html: str, replace: Callable[[str], str], outside: Collection[str]) -> str:
    """Replace the text of HTML, except inside of some elements.

    Args:
        html: A fragment whose tags are closed.
        replace: replace(text) returns the HTML for a piece of text, which is itself HTML: "<" is "&lt;".
        outside: The names of the elements whose text stays as it is.
    """
    parts, depth = list[str](), 0
    for piece in PIECES.findall(html):
        name = NAME.match(piece)
        if name is None:
            parts.append(piece if depth or piece.startswith("<") else replace(piece))
            continue
        if name[1] in outside and name[1] not in VOID:
            depth += -1 if piece.startswith("</") else 1
        parts.append(piece)
    return "".join(parts)


def plain_text(html: str) -> str:
    """Return the text of HTML on one line, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())


def slug(text: str) -> str:
    """Return a text as an id: lower case, with "-" for everything that is neither a letter nor a digit."""
    normal = unicodedata.normalize("NFKC", text).lower()
    return re.sub(r"[\W_]+", "-", normal).strip("-") or "part"


def with_heading_ids(html: str) -> str:
    """Give every h2 and h3 without attributes an id, made from its text. No two ids are the same."""
    used: dict[str, int] = {}

    def replaced(found: re.Match[str]) -> str:
        name = slug(plain_text(found["text"]))
        used[name] = used.get(name, 0) + 1
        id = name if used[name] == 1 else f"{name}-{used[name]}"
        level = found["level"]
        return f'<h{level} id="{id}">{found["text"]}</h{level}>'

    return HEADING.sub(replaced, html)


def headings_of(html: str) -> list[tuple[str, str]]:
    """Return the id and the text of every h2, in order."""
    found = re.findall(r'<h2 id="([^"]*)"[^>]*>(.*?)</h2>', html, re.DOTALL)
    return [(id, plain_text(text)) for id, text in found]
