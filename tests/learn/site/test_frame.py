"""The frame around the pages, in Chromium: every page of a small site, at two widths and in both themes."""

import pytest
from site_pages import AXE, SCHEMES, UNFOLD, WIDTHS, addresses_of, check_axe, check_fit, open_tab

from npformer.learn.site.explorer_links import PAGE
from npformer.learn.site.frame import Frame, entrances_of
from npformer.learn.site.page import Page

SCROLLERS_WITHOUT_KEY = """[...document.querySelectorAll("pre")].filter(
    (part) => part.scrollWidth > part.clientWidth !== (part.tabIndex === 0)).length"""


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


@pytest.fixture(params=SCHEMES)
def scheme(request):
    return request.param


@pytest.fixture(params=WIDTHS)
def width(request):
    return request.param


@pytest.fixture
def page(chromium, small_site, scheme, width):
    with open_tab(chromium, small_site, scheme, width) as tab:
        yield tab


@pytest.mark.browser
def test_every_page_fits_its_width_and_finds_its_files(page, small_site):
    check_fit(page, small_site)


@pytest.mark.browser
@pytest.mark.skipif(not AXE, reason="NPFORMER_AXE is not the path of axe.min.js: npm install axe-core")
def test_axe_finds_nothing_serious(page, small_site):
    check_axe(page, addresses_of(small_site))


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
