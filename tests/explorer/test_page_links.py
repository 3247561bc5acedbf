"""The link of a page of the explorer: opened anew, it shows the same view and the same numbers."""

import contextlib

import pytest
from browser import open_page, visit
from page_steps import wait_until, wait_until_generated, wait_until_ready
from word_translator import word_translator

from npformer.explorer import explore

pytestmark = pytest.mark.browser

STATE = """(() => {
    const { view, direction, result, index, session } = npformer.explorer;
    const text = (id) => document.getElementById(id).textContent;
    return [view, direction, result.path, index, npformer.loss(), location.hash,
        session.past.map((x) => x.summary.loss),
        text("source-text"), text("target-text"), text("reference"), text("changed")];
})()"""


@pytest.fixture
def page(chromium, html):
    with open_page(chromium, html) as opened:
        wait_until_ready(opened)
        yield opened


def opened_at(page, link):
    visit(page, link)
    wait_until_ready(page)
    return page


def undo(page):
    page.evaluate("npformer.explorer.session.undo(); npformer.explorer.recompute()")


def step(page, count=1, lr=0.01, optimizer="adam"):
    for _ in range(count):
        page.evaluate("([lr, optimizer]) => npformer.step(lr, { optimizer })", [lr, optimizer])


def check_link(page):
    """Check that a page which opens the link of this one shows what this one shows, and return the link."""
    page.evaluate("npformer.explorer.session.generate(); npformer.explorer.changed()")
    before = page.evaluate(STATE)
    link = page.evaluate("location.hash")
    assert opened_at(page, link).evaluate(STATE) == before
    return link


def test_training_steps_are_repeated(page):
    """Those of other sentences and changes too, and the averages of Adam, with which later steps go on."""
    step(page, 3)
    step(page, 2, 0.05, "gradient descent")
    assert "adam%22%2C0.01%2C3" in check_link(page)
    undo(page)
    assert "0.05%2C1" in check_link(page)
    page.evaluate("npformer.set_sentence('a cat sees it', 'un chat')")
    step(page, 2)
    page.evaluate("npformer.edit({ heads: { 'decoder.0.cross': [0] } })")
    step(page)
    page.evaluate("npformer.edit({ values: { 'encoder.0.feed_forward.inner.y': [[2, 1.5]] } })")
    link = check_link(page)
    step(page)
    expected = page.evaluate("npformer.loss()")
    step(opened_at(page, link))
    assert page.evaluate("npformer.loss()") == expected


def test_a_link_repeats_at_most_100_steps(page):
    opened_at(page, '#training=[["gradient descent",1e-4,100]]')
    assert page.text_content("#changed") == "100 training steps"  # of which one undoes some
    check_link(page)
    step(page, 1, 1e-4)
    page.click("#copy-link")
    assert "leaves out your 101 training steps" in page.text_content("#link-dialog")
    page.click("#link-dialog .plain")
    assert "training=" not in page.evaluate("location.hash")
    opened_at(page, "#training=" + '[["adam",0.01,101]]')
    assert "has 101 training steps, and a page repeats at most 100" in page.text_content("#message")
    assert page.evaluate("npformer.explorer.session.log.length") == 0


def test_replaced_tokens_and_the_translation_without_heads_come_back(page):
    page.evaluate("""() => {
        const { explorer } = npformer;
        explorer.session.setToken("target", 0, 7);
        explorer.session.setToken("source", 1, 1);
        explorer.recompute();
    }""")
    assert "ids=source." in check_link(page)
    page.evaluate("npformer.edit({ heads: { 'decoder.1.cross': [0, 1] } })")
    page.evaluate("npformer.set_sentence('a cat sees it')")
    check_link(page)


def test_a_link_pasted_into_an_open_page_is_read_anew(page):
    link = page.evaluate("location.hash")
    loss = page.evaluate("npformer.loss()")
    step(page, 2)
    with page.expect_event("load"):
        page.evaluate("hash => { setTimeout(() => { location.hash = hash; }); }", link)
    wait_until_ready(page)
    assert page.evaluate("npformer.explorer.session.log.length") == 0
    assert page.evaluate("npformer.loss()") == loss
    assert page.text_content("#said") == "The link is open: Steps, the dog is tired."


def test_the_link_to_the_step_keeps_the_state(page):
    page.click("#large")
    step(page)
    page.focus(".skip")
    page.keyboard.press("Enter")
    wait_until(page, "document.activeElement.id === 'main'")
    assert page.evaluate("[npformer.explorer.isLarge, npformer.explorer.session.log.length]") == [True, 1]


def test_the_chosen_weight_of_attention_comes_back(page):
    page.click('#views button:text-is("Attention")')
    told = "document.querySelector('#attention p[aria-live]').textContent"
    first = page.evaluate(told)
    page.hover("#attention-map", position={"x": 200, "y": 85})
    assert page.evaluate(told) != first
    page.click("#attention-map", position={"x": 240, "y": 130})
    chosen = page.evaluate(told)
    page.hover("#attention-map", position={"x": 200, "y": 85})  # the pointer leaves what is pinned
    assert page.evaluate(told) == chosen
    assert page.is_visible("#attention-pinned")
    assert chosen.split("from")[1] != first.split("from")[1]
    link = check_link(page)
    assert page.evaluate(told) == chosen
    assert page.is_visible("#attention-pinned")
    page.click("#attention-map", position={"x": 240, "y": 130})
    assert not page.is_visible("#attention-pinned")
    page.focus("#attention-map")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("location.hash") != link
    check_link(page)


SLOPE = """[
    ...["#slope-of-path", "#slope-of-place", "#slope input[type=range]"]
        .map((one) => document.querySelector(one).value),
    document.querySelector("#slope [aria-pressed=true]").textContent,
    document.querySelector("#slope p[aria-live]").textContent,
    document.querySelector("#slope tbody").textContent,
]"""


def test_the_checked_entry_and_its_nudge_come_back(page):
    page.click('#views button:text-is("Check a gradient")')
    page.fill("#slope-of-path", "encoder.0.feed_forward.inner.weight")
    page.fill("#slope-of-place", "2, 3")
    page.click("#slope .main")
    page.click('#slope button[data-choice="0.1"]')
    page.focus("#slope input[type=range]")
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    before = page.evaluate(SLOPE)
    assert before[:4] == ["encoder.0.feed_forward.inner.weight", "2, 3", "0.3", "± 0.1"]
    check_link(page)
    assert page.evaluate(SLOPE) == before
    page.click("#views button:first-child")  # another view shows nothing of it
    assert "slope=" not in page.evaluate("location.hash")


def test_the_chosen_row_of_the_predictions_and_the_token_of_the_target_come_back(page):
    page.click('#views button:text-is("Predictions")')
    page.click("#lens-table .lens-cell >> nth=4")
    page.click('#lens-parts button[data-choice="true"]')
    shown = "document.getElementById('lens').textContent"
    before = page.evaluate(shown)
    check_link(page)
    assert page.evaluate(shown) == before
    assert page.get_attribute('#lens-parts button[data-choice="true"]', "aria-pressed") == "true"


DAMAGED = {
    "lens": ("lens=x.y", "lens=99.1", "lens=-1"),
    "slope": ("slope=nothing:1:0:1", "slope=loss:7:x:y", "slope=loss:0:9:3"),
    "attention": ("map=a:b:c:d:e", "find=source.99_x"),
    "compare": ("compare=|||", "compare=heads|nothing|9|a cat", "compare=nothing|encoder.0|x|zebra"),
}


@pytest.mark.parametrize("view", DAMAGED)
def test_a_damaged_part_of_a_view_is_ignored(view, page):
    state = "[npformer.loss(), JSON.stringify(npformer.explorer.session.edits)]"
    expected = page.evaluate(state)
    for part in DAMAGED[view]:
        opened_at(page, f"#view={view}&{part}")
        assert page.evaluate(state) == expected
        assert page.text_content("#message") == ""
        assert page.text_content(f"#{view} p[aria-live]") != ""


def test_the_compared_sentence_the_kind_and_the_chosen_cell_come_back(page):
    page.click('#views button:text-is("Compare")')
    page.fill("#compare-text", "a cat sees it")
    page.click("#compare-form button")
    page.click('#compare-kinds button[data-choice="attention"]')
    page.click("#compare .lens-cell >> nth=2")
    page.click("#compare-take")
    wait_until_generated(page)
    told = "document.getElementById('compare').textContent"
    before = page.evaluate(told)
    link = check_link(page)
    assert "taken=attention%7C" in link
    assert len(link) < 600  # where the activation is from, not its numbers
    assert page.evaluate(told) == before
    assert page.input_value("#compare-text") == "a cat sees it"
    step(page)  # what training has changed cannot be taken over again: the link has the numbers
    assert "edits=" not in link
    assert "edits=" in check_link(page)
    undo(page)
    page.click("#compare-take")
    assert page.evaluate("npformer.explorer.session.countEdits()") == 0


def test_what_comes_before_a_part_that_cannot_be_read_is_computed(page):
    opened_at(page, '#edits={"heads":{"encoder.0.self_attention":[0]}}&training=[["adam",0.001,500]]')
    assert "The link could not be read whole" in page.text_content("#message")
    state = "[npformer.loss(), npformer.explorer.session.output]"
    before = page.evaluate(state)
    page.evaluate("npformer.explorer.session.run(); npformer.explorer.session.generate()")
    assert page.evaluate(state) == before
    assert before[0] != page.evaluate("npformer.explorer.session.before.loss")


def test_the_link_to_the_content_leaves_the_address(page):
    step(page)
    link = page.evaluate("location.hash")
    page.focus(".skip")
    page.keyboard.press("Enter")
    wait_until(page, "document.activeElement.id === 'main' && location.hash !== '#main'")
    assert page.evaluate("location.hash") == link


def test_the_last_training_step_comes_back(page):
    page.click('#views button:text-is("Teach it")')
    page.click('#training button[data-choice="adam"]')
    page.fill('#training [aria-label="learning rate"]', "0.02")
    for _ in range(2):
        page.click("#training .main")
        wait_until_generated(page)
    shown = "document.getElementById('training').textContent"
    before = page.evaluate(shown)
    assert "The weights that moved most" in before
    check_link(page)
    assert page.evaluate(shown) == before


def test_the_chosen_mask_the_lines_and_what_is_unfolded_come_back(page):
    page.click('#views button:text-is("What if")')
    chosen = '#changes button[data-choice="encoder.1.self_attention"]'
    page.click(chosen)
    check_link(page)
    assert page.get_attribute(chosen, "aria-pressed") == "true"
    page.click('#views button:text-is("Attention")')
    for pressed in ("false", "true"):
        page.click("#all-heads")
        check_link(page)
        assert page.get_attribute("#all-heads", "aria-pressed") == pressed
    page.click('#views button:text-is("Steps")')
    page.click("#tables summary")
    wait_until(
        page, "new URLSearchParams(location.hash).has('open')"
    )  # the browser tells of the unfolding later
    check_link(page)
    assert page.locator("#tables caption").count() == 3
    assert not page.evaluate("document.getElementById('every-term').open")


# the page says whether the link was copied as soon as the browser has told the page
TOLD = "document.querySelector('#link-told').textContent"


@pytest.fixture
def saved(chromium, html, tmp_path):
    """Return the page as a reader opens it, from a file in a folder, and its context."""
    file = tmp_path / "a page.html"
    file.write_text(html, encoding="utf-8")
    with contextlib.closing(
        chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    ) as context:
        page = context.new_page()
        page.goto(file.as_uri())
        wait_until_ready(page)
        yield page


def test_the_link_of_a_file_is_copied_shown_and_opened_in_a_new_tab(saved):
    saved.click('#views button:text-is("Attention")')
    saved.click("#attention-map", position={"x": 240, "y": 130})
    saved.click("#copy-link")
    wait_until(saved, TOLD)
    told = saved.text_content("#link-dialog")
    for part in ("The link was copied.", "the tab “Attention”", "the file “a page.html”"):
        assert part in told
    link = saved.input_value("#link-text")
    assert link == saved.evaluate("navigator.clipboard.readText()") == saved.evaluate("location.href")
    with saved.context.expect_page() as opened:
        saved.click("#link-dialog a")
    wait_until_ready(opened.value)
    sentence = "document.querySelector('#attention p[aria-live]').textContent"
    assert opened.value.is_visible("#attention-pinned")
    assert opened.value.evaluate(sentence) == saved.evaluate(sentence)


def test_a_received_link_is_opened_wherever_its_file_was(saved):
    saved.click("#copy-link")
    saved.fill("#received-link", "file:///elsewhere/a.html")
    saved.click("#received button")
    assert "This is not a link to a view" in saved.text_content("#received-told")
    link = " file:///elsewhere/a.html#view=slope&direction=backward&step=loss "
    for pasted in (link, None):  # the second one is that of the view which is shown
        saved.fill("#received-link", pasted or saved.url)
        with saved.expect_event("load"):
            saved.click("#received button")
        wait_until_ready(saved)
        shown = "[npformer.explorer.view, npformer.explorer.direction, document.activeElement.id]"
        assert saved.evaluate(shown) == ["slope", "backward", "slope"]
        assert saved.text_content("#said") == "The link is open: Check a gradient, the dog is tired."
        saved.click("#copy-link")


def test_a_browser_that_does_not_let_the_page_copy_shows_the_link(page):
    page.evaluate("document.execCommand = () => false")
    page.click("#copy-link")
    wait_until(page, TOLD)
    assert "copy it yourself" in page.text_content("#link-told")
    assert page.input_value("#link-text") == page.evaluate("location.href")


def test_the_page_of_a_given_translation_shows_that_of_the_model(chromium):
    """What the changes are compared with is what the model writes without them."""
    page_html = explore(word_translator(), "the dog is tired", "le chat est large").html
    with open_page(chromium, page_html) as page:
        wait_until_ready(page)
        own = page.evaluate("npformer.explorer.session.before.output")
        assert own != "le chat est large"
        assert page.text_content("#target-text") == own
        assert "the decoder reads “le chat est large”" in page.text_content("#reference")
        page.evaluate("npformer.explorer.session.generate(); npformer.explorer.changed()")
        assert page.text_content("#target-text") == own
