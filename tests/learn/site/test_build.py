"""The build of a site: its pages, its links and its files."""

import os

import pytest
from course import LESSONS
from parsed_page import ParsedPage
from processor_time import processor_time
from site_pages import AXE, SCHEMES, WIDTHS, addresses_of, check_axe, check_fit, open_tab, pages_of

from npformer.errors import UserError
from npformer.learn.course.glossary import all_terms
from npformer.learn.course.lesson import Lesson
from npformer.learn.site import build
from npformer.learn.site.build import SitePlan, build_site, default_workers, finished_files
from npformer.learn.site.lesson_links import page_of
from npformer.learn.site.lesson_pages import shares_a_run
from npformer.learn.site.links import ADDRESS
from npformer.learn.site.page import Page

MOST_BYTES = 25_000_000
MOST_SECONDS = 600  # of processor time


def test_every_page_is_whole_and_loads_only_files_of_the_site(small_site):
    assert len(pages_of(small_site)) >= 8
    for path in pages_of(small_site):
        text = path.read_text(encoding="utf-8")
        parsed = ParsedPage(text)
        assert (parsed.tags.count("h1"), parsed.tags.count("main")) == (1, 1), path
        assert 'href="#main"' in text
        assert parsed.loads
        assert not [each for each in parsed.loads if ":" in each and not each.startswith("data:")], path
        for address in ADDRESS.findall(text):
            if not address.startswith(("http", "data:", "#")):
                assert (path.parent / address.partition("#")[0]).exists(), (path, address)


def test_a_lesson_has_its_outputs_figures_formulas_and_neighbours(read, small_site):
    page = read("lessons/05_1.html")
    assert "q1 · k1 = 112.0000" in page
    assert "<msqrt>" in page
    assert '<details class="folded"><summary>check: 2 lines</summary>' in page
    assert 'rel="prev" href="04_4.html"' in page
    assert 'rel="next" href="06_1.html"' in page
    assert 'alt="Steps 5 and 6' in page
    assert (small_site / "lessons" / "05_1" / "05_softmax.png").read_bytes().startswith(b"\x89PNG")
    assert '<a href="04_4.html">lesson 4.4</a>' in page
    assert "lesson 5.3" in page.lower()  # it is not part of this site, so it is text
    assert "05_3.html" not in page
    assert page.index('id="the-definition"') < page.index("Attention Is All You Need")
    assert '<a href="#the-definition">The definition</a>' in page


def test_a_lesson_has_its_exercises_with_folded_hints(read):
    page = read("lessons/05_1.html")
    block = page[page.index('id="exercise-softmax"') : page.index('id="exercise-attention"')]
    assert "<summary>Hint 1 of 3</summary>" in block
    assert '<span class="nf">softmax</span>' in block
    assert '<a href="#exercise-softmax"><code>npformer exercise start softmax</code></a>' in page
    assert 'href="lessons/05_1.html#exercise-softmax"' in read("exercises.html")


def test_terms_lead_to_the_glossary_and_back(read):
    page, glossary = read("lessons/05_1.html"), read("glossary.html")
    assert page.count('href="../glossary.html#softmax"') == 1
    assert '<dt id="softmax">' in glossary
    assert glossary.count("<dt ") == len(all_terms())
    assert '<a href="lessons/05_1.html">5.1</a>' in glossary


def test_the_explorer_and_the_lessons_lead_to_each_other(read):
    view = "explorer/translator.html#step=encoder.0.self_attention.attention.scores"
    assert f'href="../{view}"' in read("lessons/05_1.html")
    assert f'href="{view}"' in read("explorer.html")
    explorer = read("explorer/translator.html")
    assert '"05_1_scaled_dot_product_attention.py":"../lessons/05_1.html"' in explorer
    assert '"home":"../explorer.html"' in explorer


def test_the_contents_and_the_navigation(read):
    contents, start = read("lessons/index.html"), read("index.html")
    assert '<h2 id="chapter-5">5 · Scaled dot-product attention</h2>' in contents
    assert '<a href="05_1.html">5.1 Scaled dot-product attention</a>' in contents
    assert '<a class="button" href="lessons/04_4.html"' in start
    for path in ("lessons/index.html", "explorer.html", "glossary.html"):
        assert f'<a href="{path}"' in start


def test_a_lesson_that_fails_writes_nothing(tmp_path):
    (tmp_path / "90_bad.py").write_text("# %% [markdown]\n# # 90 · Bad\n# %%\n1 / 0\n")
    plan = SitePlan([Lesson(tmp_path / "90_bad.py")])
    with pytest.raises(UserError, match="ZeroDivisionError"):
        build_site(tmp_path / "site", plan, lambda done, total: None)
    assert list((tmp_path / "site").iterdir()) == []


def test_the_lessons_of_the_translator_share_its_run():
    numbers = [lesson.number for lesson in LESSONS if shares_a_run(lesson)]
    assert numbers == ["13.5", "15.1", "15.2", "15.3", "15.4"]


def test_a_dead_link_of_a_whole_site_is_found(monkeypatch):
    plan = SitePlan(LESSONS)
    page = Page("index.html", "npformer", "Start", '<h1>x</h1><a href="none.html">x</a>')
    with pytest.raises(UserError, match=r"index\.html links none\.html"):
        finished_files([page], plan)
    monkeypatch.setattr(build, "all_lessons", list)
    assert b">x</h1>x" in finished_files([page], plan)["index.html"]


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory):
    """Build the whole site within its time and size, and return its folder."""
    site = tmp_path_factory.mktemp("whole") / "site"
    with processor_time() as used:
        built = build_site(site, SitePlan(LESSONS, workers=2), lambda done, total: None)
    print(f"{built.n_pages} pages, {built.n_bytes / 1e6:.1f} MB, {used.seconds:.0f} s of processor time")
    assert built.n_bytes < MOST_BYTES
    assert used.seconds < MOST_SECONDS
    return site


@pytest.mark.nightly
def test_the_whole_site(whole_site):
    for lesson in LESSONS:
        assert (whole_site / page_of(lesson)).exists()
    for path in pages_of(whole_site):
        ParsedPage(path.read_text(encoding="utf-8"))


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_of_the_whole_site(chromium, whole_site, scheme, width):
    with open_tab(chromium, whole_site, scheme, width) as tab:
        check_fit(tab, whole_site)
        if AXE:
            check_axe(tab, addresses_of(whole_site))


def test_there_is_a_worker_for_each_processor():
    assert 1 <= default_workers() <= (os.cpu_count() or 1)
