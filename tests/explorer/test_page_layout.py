"""How the page is laid out: nothing is cut off or moves away, on a phone, a desk and with large text."""

import re

import pytest
from browser import open_page, visit
from page_steps import wait_until_ready
from readers import DESK, PHONE
from word_translator import word_translator

from npformer.explorer import explore

pytestmark = pytest.mark.browser

LONG = "the animal didn't cross the street because it was too wide"
# of each step of a pass, but for those of the second layer: its texts, how wide the page is, and where
# the code and the buttons are
WALK = """direction => {
    const { explorer } = npformer, top = (part) => document.querySelector(part).getBoundingClientRect().top;
    const text = (part) => document.querySelector(part)?.textContent.trim() ?? "";
    explorer.setDirection(direction);
    return explorer.timeline.flatMap(({ step: { path } }, position) => {
        if (/\\b1\\.(?:self|cross|feed|attention)/.test(path)) return []; // as in the first layer
        explorer.goToPosition(position);
        explorer.changed();
        return { path, code: text("#code .now"), sentence: text("#step-sentence"),
            number: text("#arithmetic output"), width: document.documentElement.scrollWidth,
            codeTop: top("#code"), buttonTop: top("#actions .main") };
    });
}"""


@pytest.fixture(scope="module")
def html():
    return explore(word_translator(norm="pre", final_norm=True), LONG).html


@pytest.mark.parametrize("kind", ["translator", "gpt"])
def test_every_step_of_both_passes_is_shown(chromium, html, html_of_gpt, kind):
    """With its code, a sentence and a number; none is wider than a phone, and no button moves away."""
    shown = html if kind == "translator" else html_of_gpt
    with open_page(chromium, shown, **PHONE) as phone, open_page(chromium, shown, **DESK) as desk:
        button_tops = set()
        for direction in ("forward", "backward"):
            steps = desk.evaluate(WALK, direction)
            assert len(steps) > 30
            for step in steps:
                assert step["code"], step
                assert step["sentence"].endswith("."), step
                assert re.search(r"\d", step["number"]), step
            assert len({step["codeTop"] for step in steps}) == 1
            button_tops |= {round(step["buttonTop"]) for step in steps}
            assert [each for each in phone.evaluate(WALK, direction) if each["width"] > 390] == []
        assert len(button_tops) == 1  # they stand still, and above the fold
        assert max(button_tops) < 370
        bar = phone.locator("#pad").bounding_box()
        assert [bar["x"], bar["width"], bar["y"] + bar["height"]] == [0, 390, 844]


def test_the_table_of_what_if_is_whole(chromium, html):
    with open_page(chromium, html, **DESK) as page:
        page.click('#views button:text-is("What if")')
        for width in (1010, 1120, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            sizes = "(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])"
            whole, shown = page.evaluate(f"{sizes}(document.querySelector('#changes .comparison .scroller'))")
            assert whole <= shown
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_map_stays_in_view_marks_what_the_tab_shows_and_leaves_no_empty_column(chromium, html):
    with open_page(chromium, html, **DESK) as page:
        page.click('#views button:text-is("What if")')
        page.evaluate("scrollTo(0, 9999)")
        assert page.locator("#map").bounding_box()["y"] > 0
        page.click('#views button:text-is("Attention")')
        page.click('#attention button:text-is("encoder 0")')
        assert page.get_attribute(".block.present", "data-block") == "encoder.0.self_attention"
        labels = (
            "[...document.querySelectorAll('#map text')].map((text) => text.getBoundingClientRect().height)"
        )
        assert min(page.evaluate(labels)) >= 10
        page.click("#map-box summary")
        assert page.locator("main").bounding_box()["x"] < 50
        page.set_viewport_size({"width": 794, "height": 736})  # a frame in a page
        page.click('#views button:text-is("Steps")')
        assert page.locator("main").bounding_box()["width"] > 780
        assert page.locator("header").bounding_box()["height"] < 130
        page.set_viewport_size(DESK["viewport"])  # of a tab that other tests use, too


@pytest.mark.parametrize("width", [390, 1280])
def test_the_tabs_stay_where_they_are(chromium, html, width):
    """The tools beside them, too, whatever is opened; on a phone, the tabs stay in view."""
    with open_page(chromium, html, **(PHONE if width < 1000 else DESK)) as page:
        places = set()
        for number in range(1, 9):
            page.click(f"#views button:nth-child({number})")
            page.evaluate("scrollTo(0, 0)")
            boxes = [page.locator(one).bounding_box() for one in ("#views", "#copy-link")]
            places.add(tuple((box["x"], box["y"]) for box in boxes))
            page.evaluate("scrollTo(0, 9999)")
            assert width > 1000 or page.locator("#views").bounding_box()["y"] == 0
        assert len(places) == 1


# what a presentation shows in each view: its picture, and its sentence
SHOWN = {"The model": ("overview-picture", ".told"), "Steps": ("step", ".about")}


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (1920, 1080)])
def test_with_large_text_a_picture_and_a_sentence_fill_the_screen(chromium, html, width, height):
    with open_page(chromium, html, **DESK) as page:
        page.set_viewport_size({"width": width, "height": height})
        page.keyboard.press("p")
        for step in (None, "decoder.0.cross.attention.softmax", "encoder.0.feed_forward.inner.product"):
            page.evaluate("step => step && npformer.explorer.goTo(step)", step)
            view = "Steps" if step else "The model"
            page.click(f'#views button:text-is("{view}")')
            picture, sentence = SHOWN[view]
            box = page.locator(f"#{picture}").bounding_box()
            assert page.evaluate("document.documentElement.scrollHeight") <= height, step
            assert box["width"] > 0.9 * width or box["height"] > 0.7 * height, step
            assert box["height"] > 0.5 * height, step
            assert page.is_visible(f"main section:not([hidden]) {sentence}")
            assert not page.is_visible("#map")
            assert not page.is_visible("#code")
        page.keyboard.press("Space")  # the next step
        page.click("#large")
        assert page.is_visible("#code")
        assert page.is_visible(".block.present")
        page.set_viewport_size(DESK["viewport"])


def test_what_a_lesson_embeds_is_the_picture_and_the_arithmetic_alone(chromium, html):
    with open_page(chromium, html, viewport={"width": 794, "height": 620}) as page:
        visit(page, "#view=steps&step=decoder.1.cross.attention.scores&stripped=1")
        seen = [selector for selector in ("header", "nav", "#views", "#code") if page.is_visible(selector)]
        assert seen == []
        assert page.is_visible("#step")
        assert page.is_visible("#arithmetic .terms")


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


def test_the_page_works_in_the_frame_of_a_notebook(chromium):
    """Jupyter puts the HTML of a value into its own page."""
    frame = explore(word_translator(), "the dog is tired")._repr_html_()
    notebook = f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div>{frame}</div>'
    with open_page(chromium, notebook) as page:
        (inner,) = [each for each in page.frames if each != page.main_frame]
        wait_until_ready(page, inner)
        assert inner.evaluate("npformer.loss()") > 0
        inner.get_by_role("button", name="Steps", exact=True).click()
        inner.get_by_role("button", name="backward").first.click()
        inner.get_by_role("button", name="Next →").click()
        assert inner.evaluate("npformer.explorer.direction") == "backward"
        path = inner.evaluate("npformer.explorer.result.path")
        inner.locator("#arithmetic .follow").first.click()
        assert inner.evaluate("npformer.explorer.result.path") != path
        inner.locator("#trail button").last.click()  # without the history of the browser
        assert inner.evaluate("npformer.explorer.result.path") == path
        for view in ("Attention", "What if", "Check a gradient", "Teach it"):
            inner.get_by_role("button", name=view, exact=True).first.click()
        inner.get_by_role("button", name="Link to this view").click()
        assert "has no address" in inner.locator("#dialog").inner_text()
        assert page.locator("iframe").bounding_box()["height"] > 500


def test_on_a_phone_a_tab_opens_at_its_beginning_and_a_change_shows_the_loss(chromium, html):
    top = "one => document.querySelector(one).getBoundingClientRect().top"
    with open_page(chromium, html, **PHONE) as page:
        page.tap('#actions button:text-is("Change this number")')
        page.tap("#what-value .main")
        tabs = page.evaluate("document.querySelector('#views').getBoundingClientRect().bottom")
        assert tabs <= page.evaluate(top, "#what-told") < 300
        page.evaluate("scrollTo(0, 9999)")
        page.tap('#views button:text-is("Check a gradient")')
        assert tabs <= page.evaluate(top, "#main") < 300
