"""What must hold for every page of a site in Chromium: it fits its width, and axe finds nothing."""

import contextlib
import os
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

AXE = os.environ.get("NPFORMER_AXE")
SCHEMES, WIDTHS = ("light", "dark"), (390, 1280)
UNFOLD = "() => { for (const part of document.querySelectorAll('details:not(.live)')) part.open = true; }"
# without preload, by which axe would read the style sheets a second time
_OPTIONS = '{ resultTypes: ["violations"], iframes: false, preload: false }'
_RULES = f"""async () => (await axe.run(document, {_OPTIONS})).violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => [each.id, ...each.nodes.slice(0, 3).map((node) => node.html)])"""
_TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter((part) => {
    const { right, width } = part.getBoundingClientRect();
    const scrolls = part.closest("pre, math, figure, .table-wrapper, aside");
    return width && right > document.documentElement.clientWidth + 1 && !scrolls;
  }).map((part) => part.outerHTML.slice(0, 100))"""


@contextlib.contextmanager
def open_tab(browser, site, scheme, width):
    """Yield a tab for the pages of a site.

    At the end, fail if a page wrote an error or requested a file outside the site.
    """
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)

    def note(request):
        if not request.url.startswith(("data:", "blob:", f"{site.as_uri()}/")):
            problems.append(f"requests {request.url}")

    tab.on("request", note)
    try:
        yield tab
        assert problems == []
    finally:
        tab.close()


def pages_of(site):
    """Return the pages of a site without those of the explorer, which have their own tests."""
    return [path for path in sorted(site.rglob("*.html")) if path.parent.name != "explorer"]


def text_of(html):
    """Return the text of HTML without its tags."""
    return unescape(re.sub(r"<[^>]*>", "", html))


def addresses_of(site):
    """Return the addresses of these pages."""
    return [path.as_uri() for path in pages_of(site)]


def dead_links(site):
    """Return the links of the pages that lead to no file of the site, or to no place of its page."""
    texts = {path.resolve(): path.read_text(encoding="utf-8") for path in pages_of(site)}
    ids = {path: {*re.findall(r'\sid="([^"]*)"', text)} for path, text in texts.items()}
    dead = []
    for path, text in texts.items():
        for address in map(
            unescape, re.findall(r'<(?:a|img|script|link|iframe)\b[^>]*?\s(?:href|src)="([^"]*)"', text)
        ):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not file.exists() or (place and file in ids and place not in ids[file]):
                dead.append((path.relative_to(site.resolve()).as_posix(), address))
    return dead


def check_fit(tab, site):
    """Check that each page fits the width of the tab and shows its pictures, and that links lead to files."""
    for path in pages_of(site):
        tab.goto(path.as_uri())
        tab.evaluate(UNFOLD)
        tab.evaluate("for (const image of document.images) image.loading = 'eager'")
        tab.wait_for_function("[...document.images].every((image) => image.complete)")
        assert tab.evaluate("[...document.images].filter((image) => !image.naturalWidth).length") == 0, path
        width = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], (path, tab.evaluate(_TOO_WIDE))
        for link in tab.evaluate("[...document.links].map((link) => link.href)"):
            if link.startswith("file:"):
                assert Path(unquote(re.split("[?#]", link.removeprefix("file://"))[0])).exists(), (path, link)


def check_axe(tab, addresses):
    """Check that axe finds nothing serious or critical on any of some pages."""
    source = Path(AXE).read_text(encoding="utf-8")
    for address in addresses:
        tab.goto(address)
        tab.evaluate(UNFOLD)
        tab.evaluate(source)
        assert tab.evaluate(_RULES) == [], address
