"""The table in docs/explorer.md: what the views of BertViz show is found here, in at most as many clicks."""

import re

import pytest
from browser import open_page
from page_steps import wait_until_ready
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
SECOND_MAP = {"x": 260, "y": 60}  # encoder, layer 1, head 2
MAP_OF_ENCODER = "encoder, layer 1, head 2"


class Clicks:
    """A reader who counts the clicks."""

    def __init__(self, page):
        self.page, self.count = page, 0

    def click(self, selector, position=None):
        self.page.click(selector, position=position)
        self.count += 1

    def point(self, selector, x, row):
        """Point at a part of the width of a picture, in a row of 19 or 20 pixels from its top."""
        canvas = self.page.locator(selector)
        canvas.scroll_into_view_if_needed()
        width = canvas.bounding_box()["width"]
        canvas.hover(position={"x": x * width, "y": row})

    def changed(self, selector, act):
        """Return whether an action changes the text of an element."""
        before = self.page.text_content(selector)
        act()
        return self.page.text_content(selector) != before

    @property
    def line_heads(self):
        return self.page.locator("[aria-label^='Lines of head'][aria-pressed=true]").count()


def all_heads(reader):
    return reader.line_heads == 2


def another_layer(reader):
    reader.click('#attention button[data-choice="decoder.0.cross"]')
    return "cross-attention, layer 1" in reader.page.text_content(TOLD) and reader.line_heads == 2


def encoder(reader):
    reader.click('#attention button[data-choice="encoder.1.self_attention"]')
    return "encoder, layer 2" in reader.page.text_content(TOLD)


def one_head(reader):
    reader.click("#attention-maps", SECOND_MAP)
    return reader.line_heads == 1


def any_heads(reader):
    reader.click('button[aria-label="Lines of head 2"]')
    return reader.line_heads == 1


def lines_of_a_token(reader):
    return reader.changed(TOLD, lambda: reader.point("#attention-lines", 0.1, 54)) and reader.changed(
        TOLD, lambda: reader.point("#attention-lines", 0.9, 54)
    )


def small_maps(reader):
    return reader.page.is_visible("#attention-maps")


def large_map(reader):
    reader.click("#attention-maps", SECOND_MAP)
    return MAP_OF_ENCODER in reader.page.text_content(TOLD)


def layer_and_head(reader):
    reader.click("#attention-maps", SECOND_MAP)
    return reader.page.text_content(PRODUCTS).startswith("Head 2: ")


def products(reader):
    return reader.changed(PRODUCTS, lambda: reader.point("#attention-products", 0.05, 59))


ACTIONS = [
    all_heads,
    another_layer,
    encoder,
    one_head,
    any_heads,
    lines_of_a_token,
    small_maps,
    large_map,
    lines_of_a_token,
    layer_and_head,
    products,
]


@pytest.mark.parametrize(
    ("row", "act"),
    list(zip(ROWS, ACTIONS, strict=True)),
    ids=[action.__name__ + f" {i}" for i, action in enumerate(ACTIONS)],
)
def test_what_bertviz_shows_is_found_in_at_most_as_many_clicks(row, act, chromium, html):
    there, here = (int(cell.split()[0]) for cell in row[2:4])
    assert here <= there
    with open_page(chromium, html, **DESK) as page:
        page.goto("about:blank")
        page.goto("http://page.test/#view=attention")
        wait_until_ready(page)
        reader = Clicks(page)
        assert act(reader)
        assert reader.count == here
