"""The views of the explorer in Chromium: every task with the keyboard alone, and with a finger alone."""

import json

import pytest
from browser import open_page
from readers import DESK, UNNAMED, VIEWS, Finger, loss, open_view, text

pytestmark = pytest.mark.browser


def test_a_sentence_is_typed(reader):
    before = loss(reader)
    reader.press("#open-form")
    reader.write("#source-input", "a cat sees it")
    reader.press("#own")
    assert text(reader, "#source-text") == "a cat sees it"
    assert loss(reader) != before
    shape = reader.page.evaluate("npformer.shape('encoder.0.self_attention.attention.weights')")
    assert shape == [2, 5, 5]


def test_an_unknown_word_is_named_with_known_ones(reader):
    before = loss(reader)
    reader.press("#open-form")
    reader.write("#source-input", "the dgo is tired")
    reader.press("#own")
    assert "The model does not know “dgo”" in text(reader, "#message")
    assert loss(reader) == before
    assert reader.page.get_attribute("#message button", "aria-label") == "Replace dgo by dog"
    reader.press("#message button")
    assert reader.page.input_value("#source-input") == "the dog is tired"


@pytest.mark.parametrize(("sentence", "message"), [("  ", "is empty"), ("dog " * 60, "has 60 words")])
def test_a_sentence_without_words_or_with_too_many_is_refused(reader, sentence, message):
    reader.press("#open-form")
    reader.write("#source-input", sentence)
    reader.press("#own")
    assert message in text(reader, "#message")


def test_a_block_of_the_model_leads_to_its_first_step(reader):
    if isinstance(reader, Finger):
        reader.press("#map-box summary")
        reader.press('[data-block="decoder.0.feed_forward"]')
    else:
        reader.focus(".block.present")
        for _ in range(4):
            reader.page.keyboard.press("ArrowUp")
        reader.page.keyboard.press("Enter")
    block = reader.page.get_attribute(".block.present", "data-block")
    assert block != "decoder.1.cross"
    assert (
        reader.page.get_attribute(".block.present", "aria-label").lower() in text(reader, "#crumbs").lower()
    )
    # everything on which the block depends is on the path, and the loss is not
    assert (
        "on-path" in reader.page.get_attribute('[data-block="source"]', "class").split() or block == "target"
    )
    assert "on-path" not in reader.page.get_attribute('[data-block="loss"]', "class").split()


def test_the_steps_go_on_and_back(reader):
    first = text(reader, "#crumbs")
    reader.press("#actions .main")
    assert text(reader, "#crumbs") != first
    reader.press("#actions button:first-child")
    assert text(reader, "#crumbs") == first


def test_space_goes_on_and_shift_space_back(chromium, html):
    with open_page(chromium, html, **DESK) as page:
        first = page.text_content("#crumbs")
        page.click("#views button:first-child")  # a clicked button shall not catch Space
        page.keyboard.press("Space")
        assert page.text_content("#crumbs") != first
        page.keyboard.press("Shift+Space")
        assert page.text_content("#crumbs") == first


def test_the_backward_pass_shows_gradient_lines_and_gradients(reader):
    reader.press('#direction button[data-choice="backward"]')
    assert "dq = dscores @ k" in text(reader, "#code .now")
    explorer = "npformer.explorer"
    shown = reader.page.evaluate(f"{explorer}.numbers[{explorer}.index]")
    path = reader.page.evaluate(f"{explorer}.result.path")
    gradients = reader.page.evaluate(f"Array.from(npformer.gradients('{path}'))")
    head = gradients[: len(gradients) // 2]
    assert abs(shown) == max(map(abs, head)) > 0


def test_a_number_is_chosen_and_its_terms_add_up(reader):
    before = text(reader, "#arithmetic output")
    reader.choose_cell("#step")
    assert text(reader, "#arithmetic output") != before
    explorer = "npformer.explorer"
    value = reader.page.evaluate(f"{explorer}.numbers[{explorer}.index]")
    reader.press("#every-term summary")
    told = reader.page.text_content("#every-term p")
    assert abs(float(told.rsplit(" ", 1)[1].rstrip(".")) - value) < 1e-12
    assert abs(float(text(reader, "#arithmetic output").replace("−", "-")) - value) <= 0.0005


def test_a_term_leads_to_its_own_computation(reader):
    reader.press("#arithmetic .follow")
    assert reader.page.evaluate("npformer.explorer.result.path") == "decoder.1.cross.attention.q"
    assert "pinned" in text(reader, "#arithmetic")


def test_the_arrays_are_read_as_tables(reader):
    reader.press("#tables summary")
    captions = reader.page.locator("#tables caption").all_text_contents()
    assert [caption.split(",")[0] for caption in captions] == ["q", "k", "scores"]
    assert reader.page.locator("#tables th[scope=row]", has_text="dog").count() == 0  # k stands transposed
    assert reader.page.locator("#tables th[scope=col]", has_text="dog").count() == 2


def test_attention_is_seen_as_maps_and_leads_to_its_step(reader):
    open_view(reader, "Attention")
    before = text(reader, "#attention p[aria-live]")
    reader.choose_cell("#attention-map")
    assert text(reader, "#attention p[aria-live]") != before
    reader.press('#attention button[data-choice="gradients"]')
    assert "gradient of the loss" in text(reader, "#attention p[aria-live]")
    reader.press('#attention button[data-choice="rollout"]')
    assert "rollout" in text(reader, "#attention p[aria-live]")
    reader.press('#attention button[data-choice="weights"]')
    reader.press("#attention .controls > button")
    assert reader.page.evaluate("npformer.explorer.moment.step.op") == "softmax"


def test_a_head_is_switched_off_and_on(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.press("#changes .row button")
    assert loss(reader) != before
    assert text(reader, "#changed") == "1 change"
    assert "encoder, layer 1: head 1 off" in text(reader, "#changes .result")
    reader.press("#changes .row button")
    assert loss(reader) == before


def test_a_cell_of_the_mask_is_changed(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.change_cell("#mask")
    assert text(reader, "#changed") == "1 change"
    assert loss(reader) != before


def test_a_value_is_set(reader):
    open_view(reader, "What if")
    reader.write("#value-of-value", "3.5")
    reader.press("#changes form .main")
    index = reader.page.evaluate("npformer.explorer.index")
    values = reader.page.evaluate("Array.from(npformer.values('decoder.1.cross.attention.scores'))")
    assert values[index] == 3.5


def test_a_token_is_replaced(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.write('#changes input[aria-label="source token 2"]', "cat")
    reader.page.keyboard.press("Tab")
    assert text(reader, "#source-text") == "the cat is tired"
    assert loss(reader) != before


def test_a_gradient_is_checked_by_hand(reader):
    open_view(reader, "Check a gradient")
    assert "The gradient agrees with the slope." in text(reader, "#slope .verdict")
    before = text(reader, "#slope p[aria-live]")
    reader.slide("#slope input[type=range]")
    assert text(reader, "#slope p[aria-live]") != before


def test_a_training_step_lowers_the_loss_and_is_undone(reader):
    before = loss(reader)
    open_view(reader, "Training step")
    reader.write("#training input", "0.01")
    reader.press("#training .main")
    assert loss(reader) < before
    assert reader.page.locator("#training .follow").count() == 10
    reader.press("#training .controls > button:last-child")
    assert loss(reader) == before


def test_a_learning_rate_that_is_no_number_is_refused(reader):
    before = loss(reader)
    open_view(reader, "Training step")
    reader.write("#training input", "much")
    reader.press("#training .main")
    assert "not a positive number" in text(reader, "#message")
    assert loss(reader) == before


def test_the_code_is_shown_with_its_line(reader):
    reader.press("#actions button:nth-child(3)")
    assert text(reader, "#dialog .marked").strip().startswith("scores = q @ k.swapaxes(-1, -2) * scale")
    assert "05_1_scaled_dot_product_attention" in text(reader, "#dialog")
    reader.press("#dialog button")


def test_a_link_shows_the_same_view(reader):
    reader.press('#direction button[data-choice="backward"]')
    reader.press("#actions .main")
    reader.choose_cell("#step")
    open_view(reader, "What if")
    reader.press("#changes .row button")
    state = """(() => {
        const { view, direction, result, index } = npformer.explorer;
        return [view, direction, result.path, index, npformer.loss(), location.hash];
    })()"""
    before = reader.page.evaluate(state)
    reader.page.reload()
    assert reader.page.evaluate(state) == before


def test_a_step_is_saved_as_pictures_and_as_json(reader):
    for number, start in ((1, b"<svg xmlns"), (2, b"\x89PNG")):
        with reader.page.expect_download() as download:
            reader.press(f"#steps .saves button:nth-child({number})")
        assert download.value.path().read_bytes().startswith(start)
    with reader.page.expect_download() as download:
        reader.press("#actions button:nth-child(4)")
    data = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert [data["output"]["path"], len(data["inputs"])] == ["decoder.1.cross.attention.scores", 2]
    assert data["output"]["values"] == reader.page.evaluate(f"Array.from(npformer.values('{data['step']}'))")


def test_the_text_becomes_large(reader):
    size = "getComputedStyle(document.documentElement).fontSize"
    before = reader.page.evaluate(size)
    reader.press("#large")
    assert float(reader.page.evaluate(size).removesuffix("px")) > 1.4 * float(before.removesuffix("px"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_no_view_is_wider_than_the_window_and_everything_has_a_name(chromium, html, width, scheme):
    with open_page(chromium, html, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        for number, view in enumerate(VIEWS, 1):
            page.click(f"#views button:nth-child({number})")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
            unnamed = page.evaluate(UNNAMED)
            assert unnamed == [], view


def test_a_link_that_was_damaged_is_reported_or_ignored(chromium, html):
    with open_page(chromium, html, **DESK) as page:
        for wrong in (
            "#source=zebra",
            "#edits={",
            "#step=nothing&index=-4&view=elsewhere",
            "#edits=%7B%22heads%22%3A7%7D",
            "#ids=source.4_targetIn.2.x_targetOut.3",
            "#training=[[7]]",
        ):
            page.goto("about:blank")
            page.goto(f"http://page.test/{wrong}")
            assert page.evaluate("Number.isFinite(npformer.loss())")
            assert page.evaluate("npformer.explorer.view") == "steps"
