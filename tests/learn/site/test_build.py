"""The build of a site: its pages, its links and its files."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from course import LESSONS
from processor_time import processor_time
from site_pages import (
    AXE,
    SCHEMES,
    WIDTHS,
    addresses_of,
    check_axe,
    check_fit,
    dead_links,
    open_tab,
    pages_of,
    text_of,
)
from waiting import wait_until

from npformer.errors import UserError
from npformer.learn.course.glossary import all_terms
from npformer.learn.course.lesson import Lesson, find_lesson
from npformer.learn.site import build
from npformer.learn.site.build import build_site, make_jobs
from npformer.learn.site.course_pages import explorer_page
from npformer.learn.site.lesson_links import document_of
from npformer.learn.site.lesson_pages import shares_a_run

JOBS = """
import os, sys, time
from functools import partial
from pathlib import Path
from npformer.learn.site.build import Job, made_in_parallel

def job(place):
    Path(place, f"pid-{os.getpid()}").touch()
    time.sleep(600)

folder = Path(sys.argv[1])
made_in_parallel([Job("en", partial(job, folder.parent), "")] * 4, folder, 2, lambda done, total: None)
"""
MOST_BYTES = 60_000_000
MOST_SECONDS = 900  # of processor time, for a site of which nothing is stored
# addresses that the site has had since its beginning, and that other pages link
ADDRESSES = (
    "index", "start-here", "exercises", "glossary", "gallery", "gallery/F14", "zoo/index", "zoo/01",
    "explorer", "explorer/translator", "docs/index", "docs/commands", "lessons/index", "reference/index",
    "reference/nn", "search",
)  # fmt: skip


def test_no_page_loads_anything_from_outside_and_no_link_is_dead(small_site):
    assert len(pages_of(small_site)) >= 10
    for path in pages_of(small_site):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe|link)\b[^>]*?\s(?:src|href)="([^"]*)"', text)
        assert loaded
        assert not [each for each in loaded if ":" in each and not each.startswith("data:")], path
        assert len(re.findall(r"<h1\b", text)) == 1, path
    assert dead_links(small_site) == []


def test_a_lesson_has_its_outputs_figures_formulas_and_neighbours(read, small_site):
    page = read("lessons/05_1.html")
    assert "q1 · k1 = 112.0000" in text_of(page)
    assert "<msqrt>" in page
    assert '<details class="folded"><summary>check: 2 lines</summary>' in page
    assert '<a class="prev-page" href="04_4.html"' in page
    assert '<a class="next-page" href="06_1.html"' in page
    image = re.search(r'<img alt="Steps 5 and 6[^>]*?src="([^"]*)"', page)[1]
    assert (small_site / "lessons" / unquote(image)).read_bytes().startswith(b"<?xml")
    assert '<a class="reference internal" href="04_4.html">' in page
    assert "lesson 5.3" in text_of(page).lower()  # it is not part of this site, so it is text
    assert "05_3.html" not in page
    assert page.index('id="the-definition"') < page.index("Attention Is All You Need")


def test_a_lesson_has_its_exercises_with_folded_hints(read):
    page = read("lessons/05_1.html")
    block = page[page.index('id="exercise-softmax"') : page.index('id="exercise-attention"')]
    assert "<summary>Hint 1 of 3</summary>" in block
    assert '<span class="nf">softmax</span>' in block
    assert page.rindex('<details class="exercise">', 0, page.index('id="exercise-softmax"')) > 0
    assert "lessons/05_1.html#exercise-softmax" in read("exercises.html")


def test_terms_lead_to_the_glossary_and_back(read):
    page, glossary = read("lessons/05_1.html"), read("glossary.html")
    assert page.count('href="../glossary.html#term-softmax"') == 1
    assert '<dt id="term-softmax">' in glossary
    chinese = sum(bool(term.chinese) for term in all_terms())
    assert glossary.count("<dt ") == len(all_terms()) + chinese
    assert 'href="lessons/05_1.html"' in glossary


def test_the_explorer_and_the_lessons_lead_to_each_other(read):
    view = "explorer/translator.html#step=encoder.0.self_attention.attention.scores"
    assert f'href="../{view}"' in read("lessons/05_1.html")
    assert f'href="{view}"' in read("explorer.html")
    explorer = read("explorer/translator.html")
    assert '"05_1_scaled_dot_product_attention.py":"../lessons/05_1.html"' in explorer
    assert '"home":"../explorer.html"' in explorer


def test_the_home_page_has_three_doors(read):
    start = read("index.html")
    doors = start[start.index('class="doors') : start.index("run-it-yourself")]
    assert re.findall(r"<strong>(?:<a [^>]*>)?(?:<span[^>]*>)?(\w+)", doors) == ["Learn", "Check", "Look"]
    for path in ("lessons/index", "explorer", "glossary", "docs/gradient-checking", "lessons/04_4"):
        assert f'href="{path}.html"' in doors, path


def test_a_part_without_a_model_has_no_explorer():
    some = [find_lesson("4.5")]
    for lessons, model, expected in ((some, None, False), (LESSONS, None, True), (some, "en-de", True)):
        makers = [getattr(job.make, "func", job.make) for job in make_jobs(lessons, model)]
        assert (explorer_page in makers) == expected


def test_without_sphinx_one_sentence_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "NEEDED", ("sphinx_is_missing",))
    with pytest.raises(UserError, match=r"pip install 'npformer\[site\]'"):
        build_site(tmp_path / "site", [find_lesson("4.5")])
    assert not (tmp_path / "site").exists()


def test_a_lesson_that_fails_writes_nothing(tmp_path, monkeypatch):
    pytest.importorskip("joblib")
    monkeypatch.setattr(build, "NEEDED", ())
    (tmp_path / "90_bad.py").write_text("# %% [markdown]\n# # 90 · Bad\n# %%\n1 / 0\n")
    with pytest.raises(UserError, match="ZeroDivisionError"):
        build_site(tmp_path / "site", [Lesson(tmp_path / "90_bad.py")])
    assert not (tmp_path / "site").exists()


def test_the_lessons_of_the_translator_share_its_run():
    numbers = [lesson.number for lesson in LESSONS if shares_a_run(lesson)]
    assert numbers == ["13.5", "15.1", "15.2", "15.3", "15.4"]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc")
def test_the_processes_end_and_their_folder_goes_when_the_first_one_is_killed(tmp_path):
    pytest.importorskip("joblib")
    folder, program = tmp_path / "temporary", tmp_path / "program.py"
    folder.mkdir()
    program.write_text(JOBS)
    with subprocess.Popen([sys.executable, program, folder], stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: len(list(tmp_path.glob("pid-*"))) == 2)
        process.kill()
    numbers = [path.name.removeprefix("pid-") for path in tmp_path.glob("pid-*")]
    wait_until(lambda: not any(Path("/proc", number).exists() for number in numbers))
    wait_until(lambda: not folder.exists())


# In Chromium


@pytest.mark.browser
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_its_width_and_axe_finds_nothing(chromium, small_site, scheme, width):
    with open_tab(chromium, small_site, scheme, width) as tab:
        check_fit(tab, small_site)
        if AXE:
            check_axe(tab, addresses_of(small_site))


@pytest.mark.browser
def test_the_explorer_opens_at_the_step_of_a_lesson_and_leads_back(chromium, small_site):
    with open_tab(chromium, small_site, "light", 1280) as tab:
        tab.goto((small_site / "lessons" / "05_1.html").as_uri())
        tab.press("details.live summary", "Enter")  # a click may miss what pictures above it move
        tab.click("details.live a")
        assert "explorer/translator.html" in tab.url
        tab.wait_for_function("document.documentElement.classList.contains('ready')")
        assert "scores" in tab.inner_text("#crumbs") + tab.inner_text("#code")
        tab.click("#lesson a")
        tab.wait_for_url("**/lessons/05_1.html")


@pytest.mark.browser
def test_an_address_with_a_lone_percent_sign_is_no_error(chromium, small_site):
    with open_tab(chromium, small_site, "light", 1280) as tab:
        for page in ("index.html", "lessons/05_1.html", "search.html"):
            tab.goto(f"{(small_site / page).as_uri()}#%")
            tab.wait_for_timeout(100)


@pytest.mark.browser
def test_pictures_are_dark_in_dark_mode_and_an_address_unfolds_its_exercise(chromium, small_site):
    for scheme, inverted in (("light", False), ("dark", True)):
        with open_tab(chromium, small_site, scheme, 1280) as tab:
            tab.goto((small_site / "lessons" / "05_1.html").as_uri() + "#exercise-softmax")
            shown = "getComputedStyle(document.querySelector('figure.inverted img')).filter"
            assert tab.evaluate(shown).startswith("invert") == inverted
            assert tab.evaluate("document.getElementById('exercise-softmax').closest('details').open")


# The whole site


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory):
    """Build the whole site within its time and size, and return its folder."""
    for name in build.NEEDED:
        pytest.importorskip(name)
    site = tmp_path_factory.mktemp("whole") / "site"
    with processor_time() as used:
        built = build_site(site, LESSONS, workers=2)
    print(f"{built.n_pages} pages, {built.n_bytes / 1e6:.1f} MB, {used.seconds:.0f} s of processor time")
    assert built.warnings == []
    assert built.n_bytes < MOST_BYTES
    assert used.seconds < MOST_SECONDS
    return site


@pytest.mark.nightly
def test_the_whole_site(whole_site):
    for name in [*map(document_of, LESSONS), *ADDRESSES]:
        assert (whole_site / f"{name}.html").exists(), name
    assert dead_links(whole_site) == []


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_of_the_whole_site(chromium, whole_site, scheme, width):
    with open_tab(chromium, whole_site, scheme, width) as tab:
        check_fit(tab, whole_site)
        if AXE:
            check_axe(tab, addresses_of(whole_site))
