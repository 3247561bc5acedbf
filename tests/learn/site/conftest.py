"""A small site for the tests: three lessons, three guides, and the explorer of an untrained translator."""

from functools import partial

import browser
import pytest
from word_translator import word_checkpoint

from npformer.learn.course.lesson import find_lesson
from npformer.learn.site import build
from npformer.learn.site.build import build_site
from npformer.learn.site.guide_pages import guide_pages
from npformer.storage.checkpoint import save_checkpoint

chromium = browser.chromium

LESSONS = ("4.4", "5.1", "6.1")  # with formulas, figures, exercises, and views of the explorer
GUIDES = {
    "README.md": "# Documentation\n\n[first](start-here.md)\n",
    "start-here.md": "# What to read first\n\n[5.1](../lessons/05_1_scaled_dot_product_attention.py#L1)\n",
    "gradient-checking.md": "# Check gradients\n\n| a | b |\n|---|---|\n| $x^2$ | `y` |\n",
}


@pytest.fixture(scope="session", autouse=True)
def store(tmp_path_factory):
    """Keep what the tests store out of the reader's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def small_site(tmp_path_factory):
    """Build the small site and return its folder. Skip the test where Sphinx, MyST or furo is missing."""
    for name in build.NEEDED:
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    save_checkpoint(word_checkpoint(), folder / "model.safetensors")
    (folder / "docs").mkdir()
    for name, text in GUIDES.items():
        (folder / "docs" / name).write_text(text)
    lessons = [find_lesson(number) for number in LESSONS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "guide_pages", partial(guide_pages, folder))
        built = build_site(folder / "site", lessons, str(folder / "model.safetensors"))
    assert built.warnings == []
    return folder / "site"


@pytest.fixture(scope="session")
def read(small_site):
    """Return a function that reads a page of the small site."""
    return lambda path: (small_site / path).read_text(encoding="utf-8")
