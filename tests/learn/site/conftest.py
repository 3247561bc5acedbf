"""A small site for the tests of its pages: three lessons, and the explorer of an untrained translator."""

import browser
import pytest
from word_translator import word_checkpoint

from npformer.learn.course.lesson import find_lesson
from npformer.learn.site.build import SitePlan, build_site
from npformer.learn.site.reference_pages import reference_pages
from npformer.storage.checkpoint import save_checkpoint

chromium = browser.chromium

LESSONS = ("4.4", "5.1", "6.1")  # with formulas, figures, exercises, and views of the explorer


@pytest.fixture(scope="session")
def small_site(tmp_path_factory):
    """Build the small site and return its folder."""
    folder = tmp_path_factory.mktemp("site")
    save_checkpoint(word_checkpoint(), folder / "model.safetensors")
    plan = SitePlan([find_lesson(number) for number in LESSONS], str(folder / "model.safetensors"))
    build_site(folder / "site", plan, lambda done, total: None)
    return folder / "site"


@pytest.fixture(scope="session")
def read(small_site):
    """Return a function that reads a page of the small site."""
    return lambda path: (small_site / path).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def reference():
    """Return the pages of the reference."""
    return list(reference_pages())
