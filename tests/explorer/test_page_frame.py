"""A page of the explorer in the frame of a notebook, in Chromium."""

import pytest
from browser import open_page
from page_steps import wait_until_ready
from word_translator import word_translator

from npformer.explorer import explore

pytestmark = pytest.mark.browser


def test_the_page_works_in_the_frame_of_a_notebook(chromium):
    """Jupyter puts the HTML of a value into its own page."""
    frame = explore(word_translator(), "the dog is tired")._repr_html_()
    notebook = f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div>{frame}</div>'
    with open_page(chromium, notebook) as page:
        (inner,) = [each for each in page.frames if each != page.main_frame]
        wait_until_ready(page, inner)
        assert inner.evaluate("npformer.loss()") > 0
        inner.get_by_role("button", name="backward").first.click()
        inner.get_by_role("button", name="Next →").click()
        assert inner.evaluate("npformer.explorer.direction") == "backward"
        for view in ("Attention", "What if", "Check a gradient", "Training step"):
            inner.get_by_role("button", name=view, exact=True).first.click()
        inner.get_by_role("button", name="Link to this view").click()
        assert "has no address" in inner.locator("#dialog").inner_text()
        assert page.locator("iframe").bounding_box()["height"] > 500
