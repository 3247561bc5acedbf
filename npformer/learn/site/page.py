"""A page of the site, before the frame is put around it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Page:
    """One page of the site, before the frame (head, navigation, footer) is put around it.

    Args:
        path: Where the page is written below the folder of the site, with "/", such as "lessons/05_1.html".
        title: Plain text.
        section: The entry of the navigation to which the page belongs: "Start", "Lessons", "Gallery",
            "Bug zoo", "Explorer", "Reference" or "Glossary".
        body: The HTML of <main>. Its first element is an <h1>, and its h2 and h3 carry ids. Links are
            relative to the page.
        assets: The files that belong to the page, by their paths below the folder of the site.
        keywords: Further words under which the search finds the page.
    """

    path: str
    title: str
    section: str
    body: str
    assets: Mapping[str, bytes] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()
