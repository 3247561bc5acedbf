"""The frame around the pages, in Chromium: every page of a small site, at two widths and in both themes."""

import os
from pathlib import Path
from urllib.parse import unquote

import pytest

from npformer.learn.site.explorer_links import PAGE
from npformer.learn.site.frame import Frame, entrances_of
from npformer.learn.site.page import Page

AXE = os.environ.get("NPFORMER_AXE")
# without preload, by which axe would read the style sheets a second time
OPTIONS = '{ resultTypes: ["violations"], iframes: false, preload: false }'
RULES = f"""async () => (await axe.run(document, {OPTIONS})).violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => [each.id, ...each.nodes.slice(0, 3).map((node) => node.html)])"""
UNFOLD = "() => { for (const part of document.querySelectorAll('details:not(.live)')) part.open = true; }"
SCROLLERS_WITHOUT_KEY = """[...document.querySelectorAll("pre")].filter(
    (part) => part.scrollWidth > part.clientWidth !== (part.tabIndex === 0)).length"""
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter((part) => {
    const { right, width } = part.getBoundingClientRect();
    return width && right > document.documentElement.clientWidth + 1 && !part.closest("pre, math, .scroll");
  }).map((part) => part.outerHTML.slice(0, 100))"""


def test_the_sections_of_the_navigation_lead_to_their_first_pages():
    pages = [
        Page("index.html", "npformer", "Start", "<h1>a</h1>"),
        Page("lessons/05_1.html", "5.1", "Lessons", "<h1>b</h1>"),
        Page("lessons/index.html", "The course", "Lessons", "<h1>c</h1>"),
        Page("reference/a.html", "A & B", "Reference", "<h1>d</h1>", {"reference.css": b""}),
        Page("search.html", "Search", "Reference", "<h1>e</h1>"),
    ]
    entrances = entrances_of(pages)
    assert entrances["Lessons"] == "lessons/index.html"
    html = Frame(entrances, has_search=True).around(pages[3])
    assert "<title>A &amp; B · npformer</title>" in html
    for style in ("style.css", "reference.css"):
        assert f'<link rel="stylesheet" href="../{style}">' in html
    assert '<form role="search" action="../search.html"><input type="search" name="q"' in html
    assert '<li><a href="a.html" aria-current="true">Reference</a></li>' in html
    assert '<li><a href="../lessons/index.html">Lessons</a></li>' in html
    assert "Gallery" not in html
    assert 'role="search"' not in Frame(entrances).around(pages[0])


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture(params=[390, 1280])
def width(request):
    return request.param


@pytest.fixture
def page(chromium, small_site, width, scheme):
    """Yield a tab that collects what goes wrong on the pages that it opens."""
    tab = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)

    def note(request):
        if not request.url.startswith(("data:", "blob:")):
            inside = small_site.as_uri()
            if not request.url.startswith(f"{inside}/"):
                problems.append(f"requests {request.url}")

    tab.on("request", note)
    yield tab
    assert problems == []
    tab.close()


def addresses(site):
    return [path.as_uri() for path in sorted(site.rglob("*.html")) if path.parent.name != "explorer"]


@pytest.mark.browser
def test_every_page_fits_its_width_and_finds_its_files(page, small_site):
    for address in addresses(small_site):
        page.goto(address)
        page.evaluate(UNFOLD)
        page.evaluate("for (const image of document.images) image.loading = 'eager'")
        page.wait_for_function("[...document.images].every((image) => image.complete)")
        assert page.evaluate("[...document.images].filter((image) => !image.naturalWidth).length") == 0
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], (address, page.evaluate(TOO_WIDE))
        for link in page.evaluate("[...document.links].map((link) => link.href)"):
            if link.startswith("file:"):
                assert Path(unquote(link.removeprefix("file://").partition("#")[0])).exists(), (address, link)


@pytest.mark.browser
@pytest.mark.skipif(not AXE, reason="NPFORMER_AXE is not the path of axe.min.js: npm install axe-core")
def test_axe_finds_nothing_serious(page, small_site):
    source = Path(AXE).read_text(encoding="utf-8")
    for address in addresses(small_site):
        page.goto(address)
        page.evaluate(UNFOLD)
        page.evaluate(source)
        assert page.evaluate(RULES) == [], address


@pytest.mark.browser
def test_the_explorer_opens_at_the_step_of_a_lesson_and_leads_back(page, small_site):
    page.goto((small_site / "lessons" / "05_1.html").as_uri())
    page.click("details.live summary")
    page.click("details.live a")
    assert PAGE in page.url
    page.wait_for_function("document.documentElement.classList.contains('ready')")
    assert "scores" in page.inner_text("#crumbs") + page.inner_text("#code")
    page.click("#lesson a")
    page.wait_for_url("**/lessons/05_1.html")


@pytest.mark.browser
def test_the_reader_chooses_light_or_dark_for_all_pages(page, small_site, scheme):
    def background():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    other = {"light": "dark", "dark": "light"}[scheme]
    page.goto((small_site / "index.html").as_uri())
    before = background()
    page.select_option("#theme", other)
    chosen = background()
    assert chosen != before
    page.goto((small_site / "lessons" / "05_1.html").as_uri())
    assert background() == chosen
    assert page.input_value("#theme") == other
    page.select_option("#theme", "")
    assert background() == before


@pytest.mark.browser
def test_the_keyboard_reaches_everything(page, small_site):
    page.goto((small_site / "lessons" / "05_1.html").as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    page.goto((small_site / "lessons" / "05_1.html").as_uri() + "#exercise-softmax")
    assert page.evaluate("document.getElementById('exercise-softmax').open")
    page.focus("#exercise-softmax summary")
    page.keyboard.press("Enter")
    assert not page.evaluate("document.getElementById('exercise-softmax').open")
    # what scrolls can be reached, and nothing else gets in the way
    page.evaluate(UNFOLD)
    page.wait_for_timeout(100)
    assert page.evaluate(SCROLLERS_WITHOUT_KEY) == 0
