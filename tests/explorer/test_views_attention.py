"""The lines between the words of several heads, and the products of a query with all keys."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from browser import visit
from page_numbers import array, shown_number
from readers import open_view, saved

pytestmark = pytest.mark.browser

TOLD = "#attention p[aria-live]"
PRODUCTS = "section[aria-label='Query and keys']"


@pytest.fixture
def reader(reader):
    open_view(reader, "Attention")
    return reader


def drawing(reader, name):
    """Return the elements of a saved picture."""
    svg = saved(reader, f'button[aria-label="Save the picture {name} as SVG"]')
    return list(ElementTree.fromstring(svg.decode()).iter())


def lines(reader):
    """Return the colours of the lines. One picture serves both kinds: Chromium stops after some downloads."""
    saved = drawing(reader, "attention-lines")
    colors = [each.get("stroke") for each in saved if each.tag.endswith(("polyline", "line"))]
    return {color for color in colors if color}


def test_the_heads_of_the_lines_are_chosen_one_by_one(reader):
    both = lines(reader)
    assert len(both) == 2  # all heads, until one is chosen
    reader.press("#all-heads")
    assert len(lines(reader)) == 1
    reader.press('button[aria-label="Lines of head 1"]')
    assert lines(reader) == both
    reader.press('button[aria-label="Lines of head 0"]')
    assert len(lines(reader)) == 1
    assert lines(reader) < both
    reader.press("#all-heads")
    assert lines(reader) == both
    visit(reader.page, reader.page.evaluate("location.hash"))
    assert reader.page.get_attribute("#all-heads", "aria-pressed") == "true"
    reader.press("#all-heads")
    assert len(lines(reader)) == 1


def test_the_head_that_is_chosen_has_its_lines_alone(reader):
    reader.press('button[aria-label="Lines of head 0"]')
    second = lines(reader)
    reader.press("#all-heads")
    assert len(lines(reader)) == 2
    reader.press('[aria-label="head of the map"] button:nth-child(2)')
    assert lines(reader) == second
    reader.press('#attention button[data-choice="encoder.0.self_attention"]')
    assert lines(reader) == second


def strong(reader):
    """Return the heights at which the strong lines begin and end."""
    found = [each for each in drawing(reader, "attention-lines") if each.tag.endswith("}line")]
    return [
        [float(each.get("y1")), float(each.get("y2"))]
        for each in found
        if float(each.get("stroke-opacity")) > 0.3
    ]


def test_the_lines_of_a_query_or_of_a_key_are_strong(reader):
    assert len({start for start, _ in strong(reader)}) == 1
    canvas = reader.page.locator("#attention-lines")
    canvas.scroll_into_view_if_needed()
    width = canvas.bounding_box()["width"]
    reader.page.mouse.move(0, 0)
    canvas.hover(position={"x": 0.9 * width, "y": 14 + 20})
    assert len({end for _, end in strong(reader)}) <= 1
    assert "to “dog” is" in reader.page.text_content(TOLD)
    canvas.hover(position={"x": 0.1 * width, "y": 14 + 20})
    assert len({start for start, _ in strong(reader)}) == 1
    canvas.focus()
    reader.page.keyboard.press("ArrowRight")
    reader.page.keyboard.press("ArrowDown")
    assert "to “is” is" in reader.page.text_content(TOLD)


def test_the_products_of_a_query_with_all_keys_are_those_of_the_model(reader):
    name = "decoder.1.cross.attention"
    q, k = (array(reader.page, f"{name}.{one}") for one in "qk")
    sums = q[0, 0] @ k[0].T
    weights = array(reader.page, f"{name}.weights")[0, 0]
    told = reader.page.text_content(f"{PRODUCTS} p")
    shown = re.search(r"For “the”, q · k is (\S+), and the weight is (\S+)\.$", told)
    assert shown_number(shown[1]) == pytest.approx(sums[0], abs=5e-4)
    assert shown_number(shown[2]) == pytest.approx(weights[0], abs=5e-4)
    assert "Times 0.500, it is the score" in told
    texts = ["".join(each.itertext()) for each in drawing(reader, "attention-products")]
    numbers = [shown_number(text) for text in texts if re.fullmatch(r"−?\d*\.\d{2}", text)]
    np.testing.assert_allclose(numbers, sums, atol=5.1e-3)


def test_a_key_of_the_products_is_chosen(reader):
    canvas = reader.page.locator("#attention-products")
    canvas.scroll_into_view_if_needed()
    canvas.click(position={"x": 300, "y": 40 + 19})
    assert reader.page.is_visible("#attention-pinned")
    assert "to “dog” is" in reader.page.text_content(TOLD)
    reader.page.keyboard.press("ArrowDown")
    assert "to “is” is" in reader.page.text_content(TOLD)
    assert "For “is”, q · k is" in reader.page.text_content(f"{PRODUCTS} p")
    reader.page.keyboard.press("ArrowRight")
    assert "the query q of “<S>”" not in reader.page.text_content(f"{PRODUCTS} p")
