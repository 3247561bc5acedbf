"""The links of the finished pages: each relative one leads to a page, a file or a place that exists."""

import posixpath
import re
from collections.abc import Collection, Mapping
from html import unescape
from urllib.parse import unquote, urlsplit

from npformer.errors import UserError

LINK = re.compile(r'<a (?:[^>]*\s)?href="(?P<address>[^"]*)"[^>]*>(?P<text>.*?)</a>', re.DOTALL)
ADDRESS = re.compile(r'\s(?:href|src|action)="([^"]*)"')
ID = re.compile(r'\sid="([^"]*)"')
VIEWS = "explorer/"  # what follows "#" is a view of the explorer there, not an id


class Targets:
    """The files and places of a site to which a link can lead.

    Args:
        pages: The HTML of the pages by their paths.
        assets: The paths of the other files.
    """

    def __init__(self, pages: Mapping[str, str], assets: Collection[str]) -> None:
        self.pages = pages
        self.files = {*pages, *assets}
        self.ids = {path: set(ID.findall(html)) for path, html in pages.items()}

    def problem(self, path: str, address: str) -> str:
        """Return what is wrong with a link on a page, or ""."""
        parts = urlsplit(unescape(address))
        if parts.scheme or parts.netloc:
            return ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path)))
        file = file if parts.path else path
        place = unquote(parts.fragment)
        if file not in self.files:
            return "which the site does not have"
        if place and not file.startswith(VIEWS) and place not in self.ids.get(file, ()):
            return f"but {file} has no such place"
        return ""

    def check(self) -> None:
        """Check that every relative link leads somewhere.

        Raises:
            UserError: If a link leads nowhere. The message names the page and the link.
        """
        for path, html in self.pages.items():
            for address in ADDRESS.findall(html):
                problem = self.problem(path, address)
                if problem:
                    raise UserError(f"{path} links {address}, {problem}: correct the link")

    def without_dead_links(self) -> dict[str, str]:
        """Return the pages with the text alone in place of every link that leads nowhere."""

        def cleaned(path: str, html: str) -> str:
            return LINK.sub(
                lambda found: found["text"] if self.problem(path, found["address"]) else found[0], html
            )

        return {path: cleaned(path, html) for path, html in self.pages.items()}
