"""How the page is laid out: nothing is cut off or moves away, on a phone, a desk and with large text."""

import pytest
from browser import open_page
from readers import DESK, PHONE
from word_translator import word_translator

from npformer.explorer import explore

pytestmark = pytest.mark.browser

LONG = "the animal didn't cross the street because it was too wide"
# the steps at which an element is wider than the window, so that the bar at its bottom would be moved away
TOO_WIDE = """direction => {
    const { explorer } = npformer, wide = [];
    explorer.setDirection(direction);
    explorer.timeline.forEach((_, position) => {
        explorer.goToPosition(position);
        explorer.changed();
        const { scrollWidth, clientWidth } = document.documentElement;
        if (scrollWidth > clientWidth) wide.push(position + 1);
    });
    return wide;
}"""


@pytest.fixture(scope="module")
def html():
    return explore(word_translator(norm="pre", final_norm=True), LONG).html


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_no_step_is_wider_than_a_phone(chromium, html, direction):
    with open_page(chromium, html, **PHONE) as page:
        assert page.evaluate(TOO_WIDE, direction) == []
        bar = page.locator("#pad").bounding_box()
        assert [bar["x"], bar["width"], bar["y"] + bar["height"]] == [0, 390, 844]


def test_the_buttons_above_the_code_take_the_same_room_at_every_step(chromium, html):
    with open_page(chromium, html, **DESK) as page:
        heights = page.evaluate("""() => {
            const { explorer } = npformer;
            return explorer.timeline.map((_, position) => {
                explorer.goToPosition(position);
                explorer.changed();
                return document.getElementById("code").getBoundingClientRect().top;
            });
        }""")
        assert len(set(heights)) == 1


@pytest.mark.parametrize("width", [1010, 1120, 1280])
def test_the_table_of_what_if_is_whole(chromium, html, width):
    with open_page(chromium, html, viewport={"width": width, "height": 900}) as page:
        page.click("#views button:nth-child(3)")
        sizes = "(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])"
        whole, shown = page.evaluate(f"{sizes}(document.querySelector('#changes .comparison .scroller'))")
        assert whole <= shown
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_large_text_leaves_the_map_above_the_view(chromium, html):
    with open_page(chromium, html, **DESK) as page:
        assert page.is_visible(".block.present")
        page.click("#large")
        assert not page.is_visible(".block.present")
        page.click("#map-box summary")
        page.click('[data-block="encoder.0.feed_forward"]')
        assert "feed-forward" in page.text_content("#crumbs").lower()
        assert page.is_visible(".block.present")  # it stays unfolded
        page.click("#large")
        assert page.is_visible(".block.present")


def test_large_text_shows_the_numbers_of_an_attention_map(chromium, html):
    with open_page(chromium, html, **DESK) as page:
        page.click("#views button:nth-child(2)")
        page.click("#large")
        widths = page.evaluate(
            "['attention-map', 'attention'].map((id) => document.getElementById(id).offsetWidth)"
        )
        assert widths[0] > 0.9 * widths[1]


def test_a_finger_that_moves_over_a_grid_scrolls_and_chooses_nothing(chromium, html):
    with open_page(chromium, html, **PHONE) as page:
        state = "[npformer.explorer.index, npformer.explorer.isPinned]"
        before = page.evaluate(state)
        canvas = page.locator("#step")
        canvas.scroll_into_view_if_needed()
        canvas.evaluate("""canvas => {
            const { left, top, width, height } = canvas.getBoundingClientRect();
            for (const part of [0.3, 0.5, 0.7]) {
                canvas.dispatchEvent(new PointerEvent("pointermove", {
                    pointerType: "touch", clientX: left + part * width, clientY: top + 0.9 * height }));
            }
        }""")
        assert page.evaluate(state) == before
        assert (
            page.evaluate("getComputedStyle(document.getElementById('step')).touchAction") == "manipulation"
        )
        box = canvas.bounding_box()
        page.tap("#step", position={"x": 0.8 * box["width"], "y": box["height"] - 12})
        assert page.evaluate(state) != before
