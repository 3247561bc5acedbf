"""Pages of the explorer are accessible: axe finds nothing in any view, on a phone and a desk, in both themes.

The tests need axe-core of npm: NPFORMER_AXE is the path of its axe.min.js. `bash .ci/explorer` installs it.
"""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from browser import open_page
from page_steps import wait_until_ready
from readers import VIEWS

from npformer import nn
from npformer.explorer import explore_layer
from npformer.explorer.page import make_page
from npformer.explorer.recorded import recorded_data, with_saved

AXE = os.environ.get("NPFORMER_AXE")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not AXE, reason="NPFORMER_AXE is not the path of axe.min.js: npm install axe-core"),
]

# what axe found: the rule, and the first elements that break it. Without preload, by which axe would read the
# style sheets a second time
RUN = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false });
    return violations.map(({ id, nodes }) =>
        [id, ...nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`)]);
}"""


@pytest.fixture(scope="module")
def pages(html, loaded_gpt):
    """Return the pages by their kind: a live one, a recorded one, and that of a layer."""
    x = np.random.default_rng(0).standard_normal((1, 3, 8)).astype(np.float32)
    texts = ["the cat ate", "the dog"]
    head, arrays = with_saved([recorded_data(loaded_gpt(), text) for text in texts])
    layer = explore_layer(nn.FeedForward(8, 12), x)
    return {
        "live": html,
        "recorded": make_page(head | {"sentences": texts}, arrays).html,
        "layer": layer.html,
    }


# the phone and the desk, each in one of the themes; every night, all widths in both
SCREENS = [(390, "dark"), (1280, "light")]
if os.environ.get("NPFORMER_NIGHTLY"):
    SCREENS = list(product((390, 1280, 1920), ("light", "dark")))
every_screen = pytest.mark.parametrize(("width", "scheme"), SCREENS)


def opened(chromium, html, width, scheme):
    """Open a page on which a test may run axe in spite of the page's policy."""
    size = {"width": width, "height": 900}
    return open_page(chromium, html, viewport=size, color_scheme=scheme, bypass_csp=True)


class Checker:
    """Axe on a page. Each state of the page is checked in turn, and what it finds is collected."""

    def __init__(self, page):
        self.page, self.found = page, []
        wait_until_ready(page)
        page.evaluate(Path(AXE).read_text(encoding="utf-8"))

    def check(self, state):
        self.found += [[state, *violation] for violation in self.page.evaluate(RUN)]

    def show(self, view):
        self.page.click(f'#views button:text-is("{view}")')


@every_screen
def test_the_views_of_a_live_page(chromium, pages, width, scheme):
    with opened(chromium, pages["live"], width, scheme) as page:
        checker = Checker(page)
        check_steps(checker)
        check_attention(checker)
        page.click("#switch-head")  # a head off
        for view in ("The model", "Predictions", "Compare", "What if", "Check a gradient", "Teach it"):
            checker.show(view)
            if view == "Teach it":
                page.click("#training .main")
            checker.check(view)
        page.click("#large")
        for view in VIEWS:
            checker.show(view)
            checker.check(f"{view}, large")
        assert checker.found == []


@every_screen
@pytest.mark.parametrize("kind", ["recorded", "layer"])
def test_the_views_of_pages_that_compute_nothing(kind, chromium, pages, width, scheme):
    with opened(chromium, pages[kind], width, scheme) as page:
        checker = Checker(page)
        check_steps(checker)
        views = page.locator("#views button").all_text_contents()
        assert views == VIEWS[: {"recorded": 4, "layer": 2}[kind]]  # no tab without content
        for view in views:
            checker.show(view)
            checker.check(view)
        assert checker.found == []


def check_steps(checker):
    """Check the steps in both directions, with all that can be unfolded, the dialog and the form."""
    page = checker.page
    checker.check("forward")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    page.locator('#direction button[data-choice="backward"]').dispatch_event("click")  # below the open loss
    checker.check("backward, everything unfolded")
    page.evaluate("for (const part of document.querySelectorAll('main details, .loss')) part.open = false")
    page.click("#actions button:nth-child(3)")
    checker.check("the code")
    page.click("#dialog button")
    page.click("#copy-link")
    checker.check("the link")
    page.click("#link-dialog .plain")
    if page.is_visible("#open-form"):
        page.click("#open-form")
        page.fill("#source-input", "the dgo is tired")
        page.click("#own")
        checker.check("the form with a message")
        page.fill("#source-input", "a cat sees it")
        page.click("#own")


def check_attention(checker):
    """Check all quantities of the maps, and the lines of one head and of all."""
    page = checker.page
    checker.show("Attention")
    if page.locator(".finder option").count() > 2:
        page.select_option(".finder select", index=1)
    for quantity in ("gradients", "mean", "rollout", "weights"):
        page.click(f'#attention button[data-choice="{quantity}"]')
        checker.check(f"attention, {quantity}")
    page.click("#all-heads")
    checker.check("attention, lines of all heads")
