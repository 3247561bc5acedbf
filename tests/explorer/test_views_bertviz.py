"""The table in docs/explorer.md: what the views of BertViz show is found here, in at most as many clicks."""

import re

import pytest
from browser import open_page, visit
from paths import ROOT
from readers import DESK

pytestmark = pytest.mark.browser

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "explorer.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| (head|model|neuron) view \|", line)
]
TOLD = "#attention p[aria-live]"
PRODUCTS = "section[aria-label='Query and keys'] p"

# what is clicked: a selector, and for a picture the place in it
CROSS = ('#attention button[data-choice="decoder.0.cross"]', None)
ENCODER = ('#attention button[data-choice="encoder.1.self_attention"]', None)
SECOND_MAP = ("#attention-maps", {"x": 260, "y": 60})  # encoder, layer 0, head 1
SECOND_HEAD = ('button[aria-label="Lines of head 1"]', None)


def heads(page):
    """Return how many heads have lines."""
    return page.locator("[aria-label^='Lines of head'][aria-pressed=true]").count()


def answers(page, picture, x, row, selector):
    """Return whether a text changes when one points at a part of the width of a picture, in a row of it."""
    before, canvas = page.text_content(selector), page.locator(picture)
    canvas.scroll_into_view_if_needed()
    canvas.hover(position={"x": x * canvas.bounding_box()["width"], "y": row})
    return page.text_content(selector) != before


def lines_answer(page):
    return all(answers(page, "#attention-lines", x, 54, TOLD) for x in (0.1, 0.9))


SHOWN = [
    # the head view
    ([], lambda page: heads(page) == 2),
    ([CROSS], lambda page: "cross-attention, layer 0" in page.text_content(TOLD) and heads(page) == 2),
    ([ENCODER], lambda page: "encoder, layer 1" in page.text_content(TOLD)),
    ([SECOND_MAP], lambda page: heads(page) == 1),
    ([SECOND_HEAD], lambda page: heads(page) == 1),
    ([], lines_answer),
    # the model view
    ([], lambda page: page.is_visible("#attention-maps")),
    ([SECOND_MAP], lambda page: "encoder, layer 0, head 1" in page.text_content(TOLD)),
    # the neuron view
    ([], lines_answer),
    ([SECOND_MAP], lambda page: page.text_content(PRODUCTS).startswith("Head 1: ")),
    ([], lambda page: answers(page, "#attention-products", 0.05, 59, PRODUCTS)),
]


@pytest.fixture(scope="module")
def page(chromium, html):
    with open_page(chromium, html, **DESK) as opened:
        yield opened


@pytest.mark.parametrize("number", range(len(SHOWN)))
def test_what_bertviz_shows_is_found_in_at_most_as_many_clicks(number, page):
    assert len(SHOWN) == len(ROWS)
    there, here = (int(cell.split()[0]) for cell in ROWS[number][2:4])
    clicks, is_shown = SHOWN[number]
    assert len(clicks) == here <= there
    visit(page, "#view=attention")
    for selector, position in clicks:
        page.click(selector, position=position)
    assert is_shown(page), ROWS[number]
