"""What the tasks of a reader promise: each with the keyboard alone, and with a finger alone on a phone."""

import json
import re
import xml.etree.ElementTree as ElementTree
from html import unescape

import numpy as np
import pytest
from browser import open_page, visit
from page_numbers import array, shown_number
from page_steps import wait_until_generated
from readers import DESK, UNNAMED, VIEWS, Finger, loss, open_view, saved, text

pytestmark = pytest.mark.browser

TOLD = "#attention p[aria-live]"
IN_VIEW = """selector => {
    const { top, bottom } = document.querySelector(selector).getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
}"""


def of(reader, expression):
    """Return what an expression is about the explorer of the page."""
    return reader.page.evaluate(f"(() => {{ const e = npformer.explorer; return {expression}; }})()")


def row(reader, name):
    """Return the numbers or texts of a row of the comparison of before and after."""
    cells = reader.page.locator("#changes .comparison tr", has=reader.page.locator(f"th:text-is('{name}')"))
    return cells.first.locator("td").all_text_contents()


# The sentence and the model


def test_a_sentence_is_typed_and_all_numbers_are_those_of_the_pair(reader):
    before = loss(reader)
    reader.press("#open-form")
    reader.write("#source-input", "a cat sees it")
    reader.press("#own")
    assert text(reader, "#source-text") == "a cat sees it"
    assert loss(reader) != before
    assert reader.page.evaluate("npformer.shape('encoder.0.self_attention.attention.weights')") == [2, 5, 5]
    reader.write("#target-input", "un chat")
    reader.press("#sentence-form .main")
    assert "the decoder reads “un chat”" in text(reader, "#reference")
    assert reader.page.evaluate("npformer.shape('logits')")[0] == 3  # two words and the end symbol
    assert shown_number(text(reader, "#loss")) == pytest.approx(loss(reader), abs=5e-4)


def test_an_unknown_word_is_named_with_known_ones(reader):
    before = loss(reader)
    reader.press("#open-form")
    reader.write("#source-input", "the dgo is tired")
    reader.press("#own")
    assert "The model does not know “dgo” and reads <UNK> instead." in text(reader, "#message")
    assert loss(reader) != before
    assert reader.page.get_attribute("#message button", "aria-label") == "Replace dgo by dog"
    reader.press("#message button")
    assert reader.page.input_value("#source-input") == "the dog is tired"


def test_a_block_of_the_model_leads_to_its_first_step(reader):
    if isinstance(reader, Finger):
        reader.press("#map-box summary")
        reader.press('[data-block="decoder.0.feed_forward"]')
    else:
        reader.focus(".block.present")
        for _ in range(4):
            reader.page.keyboard.press("ArrowUp")
        reader.page.keyboard.press("Enter")
    assert reader.page.get_attribute(".block.present", "data-block") != "decoder.1.cross"
    title = reader.page.get_attribute(".block.present", "aria-label")
    assert title.lower() in text(reader, "#crumbs").lower()


def test_the_path_of_the_step_is_highlighted_in_the_model(reader):
    """Forward, all that it depends on; backward, all that depends on it."""
    blocks = "[...document.querySelectorAll('.block.on-path')].map(e => e.dataset.block)"
    forward = set(reader.page.evaluate(blocks))
    assert {"source", "target", "encoder.1.feed_forward", "decoder.1.cross"} <= forward
    assert not {"output", "loss", "decoder.1.feed_forward"} & forward
    reader.press('#direction button[data-choice="backward"]')
    backward = set(reader.page.evaluate(blocks))
    assert {"output", "loss", "decoder.1.feed_forward", "decoder.1.cross"} <= backward
    assert not {"source", "target", "decoder.0.cross"} & backward


# The steps and their arithmetic


def test_the_steps_go_on_and_back_and_end_with_the_last_one(reader):
    first = text(reader, "#crumbs")
    reader.press("#actions .main")
    assert text(reader, "#crumbs") != first
    reader.press("#actions button:first-child")
    assert text(reader, "#crumbs") == first
    reader.page.evaluate("npformer.explorer.goToPosition(1e6); npformer.explorer.changed()")
    assert reader.page.is_disabled("#actions .main")


def test_the_backward_pass_shows_gradient_lines_gradients_and_code(reader):
    reader.press('#direction button[data-choice="backward"]')
    assert "dq = dscores @ k" in text(reader, "#code .now")
    gradients = array(reader.page, of(reader, "e.result.path"), "gradients")
    assert abs(of(reader, "e.numbers[e.index]")) == abs(gradients[0]).max() > 0
    reader.press("#actions button:nth-child(3)")
    marked = reader.page.locator("#dialog .marked")
    assert any("dq = dscores @ k" in line for line in marked.all_text_contents())
    assert marked.first.is_visible()
    assert "05_2_" in text(reader, "#dialog")  # the lesson that derives it
    reader.press("#dialog button")
    assert not reader.page.evaluate("document.getElementById('dialog').open")


def test_a_number_is_chosen_and_its_terms_add_up(reader):
    before = text(reader, "#arithmetic output")
    reader.choose_cell("#step")
    assert text(reader, "#arithmetic output") != before
    value = of(reader, "e.numbers[e.index]")
    reader.press("#every-term summary")
    told = text(reader, "#every-term p")
    assert abs(float(told.rsplit(" ", 1)[1].rstrip(".")) - value) < 1e-12
    assert abs(shown_number(text(reader, "#arithmetic output")) - value) <= 0.0005


def test_a_term_leads_to_its_own_computation(reader):
    """A chosen cell of the result stays when it is pinned, and each term leads to its own terms."""
    reader.choose_cell("#step")
    if not isinstance(reader, Finger):  # a tap pins, as a click does
        reader.page.keyboard.press("Enter")
    assert "pinned" in text(reader, "#arithmetic")
    path = []
    for _ in range(3):
        reader.press("#arithmetic .follow")
        path.append(of(reader, "e.result.path"))
        assert "pinned" in text(reader, "#arithmetic")
    assert path[0] == "decoder.1.cross.attention.q"
    assert len(set(path)) == 3


def test_the_arrays_are_read_as_tables(reader):
    reader.press("#tables summary")
    captions = reader.page.locator("#tables caption").all_text_contents()
    assert [caption.split(",")[0] for caption in captions] == ["q", "k", "scores"]
    assert reader.page.locator("#tables th[scope=row]", has_text="dog").count() == 0  # k stands transposed
    assert reader.page.locator("#tables th[scope=col]", has_text="dog").count() == 2


# What if


def cross_entropy(reader):
    """Return the mean of -log p(target), from the log-probabilities of the page."""
    targets = of(reader, "e.session.ids.targetOut")
    return -array(reader.page, "loss.log_probs")[range(len(targets)), targets].mean()


def test_a_head_is_switched_off_and_before_and_after_stand_side_by_side(reader):
    before, plain_before = loss(reader), cross_entropy(reader)
    smoothing = r"It has label smoothing 0\.1, .* without it, it is (\S+)\."
    told = re.fullmatch(smoothing, text(reader, "#smoothing"))
    assert shown_number(told[1]) == pytest.approx(plain_before, abs=5e-4)
    open_view(reader, "What if")
    reader.press("#changes .row button")
    wait_until_generated(reader.page)
    assert text(reader, "#changed") == "1 change"
    assert "encoder, layer 0: head 0 off" in text(reader, "#changes .result")
    for name, old, new in (
        ("Loss with label smoothing 0.1", before, loss(reader)),
        ("Cross-entropy without it", plain_before, cross_entropy(reader)),
    ):
        numbers = [shown_number(cell.lstrip("+")) for cell in row(reader, name)[:3]]
        assert numbers == pytest.approx([old, new, new - old], abs=5e-4)
    assert row(reader, "Translation")[1] == of(reader, "e.session.output") == text(reader, "#target-text")
    rows = reader.page.locator("#changes .words tbody tr").all()
    changes = [each.locator("td").all_text_contents() for each in rows]
    assert len(changes) == reader.page.evaluate("npformer.shape('logits')[0]")
    for _, old, now, change, _ in changes:  # in percent, rounded
        moved = shown_number(now.rstrip(" %")) - shown_number(old.rstrip(" %"))
        assert shown_number(change) == pytest.approx(moved, abs=0.16)
    assert any(shown_number(change[3]) for change in changes)
    reader.press("#changes .row button")
    assert loss(reader) == before


def test_a_mask_is_changed_replaced_and_restored(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.change_cell("#mask")
    assert text(reader, "#changed") == "1 change"
    assert "1 cell of the mask set" in text(reader, "#changes .result li")
    found = [loss(reader)]
    for number in (1, 2, 3):  # everything, causal, window
        reader.press(f"#changes .controls:has(+ .picture) button:nth-child({number})")
        found.append(loss(reader))
        assert text(reader, "#changed") == ("" if number == 1 else "1 change")  # the model's own mask is none
    assert found[1] == before  # cross-attention may attend to every word of the source
    assert len(set(found)) == 4
    masked = "decoder.1.cross.attention.masked"
    queries, keys = reader.page.evaluate(f"npformer.shape('{masked}').slice(1)")
    window = [int(abs(t - s) <= 2) for t in range(queries) for s in range(keys)]
    assert of(reader, f"Array.from(e.tape.names.get('{masked}').note.allowed)") == window
    reader.press("#changes .controls:has(+ .picture) button:nth-child(4)")
    assert loss(reader) == before


def test_the_page_says_why_the_two_losses_change_in_opposite_directions(reader):
    before, plain_before = loss(reader), cross_entropy(reader)
    open_view(reader, "What if")
    for logit, is_opposite in ((50, False), (-50, True)):  # of a wrong token
        reader.page.evaluate(
            """logit => {
                const { explorer } = npformer, wrong = explorer.session.ids.targetOut[0] === 5 ? 6 : 5;
                explorer.session.setEdits("values", "output.y", [[wrong, logit]]);
                explorer.recompute();
            }""",
            logit,
        )
        product = (loss(reader) - before) * (cross_entropy(reader) - plain_before)
        assert (product < 0) == is_opposite
        assert ("in opposite directions" in text(reader, "#changes .comparison")) == is_opposite


def test_the_focus_is_on_the_list_after_a_change_is_removed(reader):
    open_view(reader, "What if")
    for button in ("li button", "ul + button"):  # one change, and all
        reader.press("#changes .row button")
        reader.press("#copy-link")
        assert "with the sentence, your changes and training steps" in text(reader, "#link-dialog")
        assert "what the tab “What if” shows" in text(reader, "#link-dialog")
        reader.page.keyboard.press("Escape")
        reader.press(f"#changes .result {button}")
        wait_until_generated(reader.page)
        assert reader.page.evaluate("document.activeElement.textContent").startswith("Nothing is changed.")
        assert text(reader, "#changed") == ""


def test_the_activation_is_replaced(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.press('#changes button[data-choice="gelu"]')
    assert reader.page.evaluate("npformer.paths().includes('encoder.0.feed_forward.hidden.activation.1')")
    assert "Activation: gelu instead of relu" in text(reader, "#changes .result li")
    changed, link = loss(reader), reader.page.evaluate("location.hash")
    assert changed != before
    reader.page.evaluate("npformer.set_sentence('a cat sees it')")
    assert text(reader, "#changed") == "1 change"  # as heads that are off, it stays
    visit(reader.page, link)
    assert loss(reader) == changed
    reader.press("#changes .result li button")
    assert loss(reader) == before
    visit(reader.page, '#edits={"settings":{"activation":"swiglu","n_layers":1}}')
    assert loss(reader) == before


def test_a_value_and_a_weight_are_set(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.write("#value-of-value", "3.5")
    reader.press("#changes form .main")
    index = of(reader, "e.index")
    assert array(reader.page, "decoder.1.cross.attention.scores").flat[index] == 3.5
    name = "encoder.0.feed_forward.inner.weight"
    for field, written in (("path", name), ("place", "2, 3"), ("value", "-1.5")):
        reader.write(f"#value-of-{field}", written)
    reader.press("#changes form .main")
    assert array(reader.page, name)[2, 3] == -1.5
    assert loss(reader) != before
    for _ in range(2):
        reader.press("#changes .result li button")
    assert loss(reader) == before


def test_a_token_is_replaced(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.page.select_option("#what-tokens select >> nth=0", label="dog")
    reader.write("#what-tokens input", "cat")
    reader.page.keyboard.press("Tab")
    assert text(reader, "#source-text") == "the cat is tired"
    assert reader.page.locator("#what-tokens select").count() == 2  # of the sentence, and of its translation
    assert loss(reader) != before


# Gradients and training


def test_an_activation_of_another_text_is_taken_over(reader):
    """The chosen cell says the effect, and the model with this activation has the score that it predicts."""
    open_view(reader, "Compare")
    source = text(reader, "#source-text")
    other = reader.page.input_value("#compare-text")
    assert sum(a != b for a, b in zip(source.split(), other.split(), strict=True)) == 1
    assert f"“{source.split()[-1]}” becomes “{other.split()[-1]}”." in text(reader, "#compare-found")
    reader.write("#compare-form + p input", "cat")  # in place of the last word; the page compares at once
    reader.page.keyboard.press("Enter")
    assert reader.page.input_value("#compare-text").split() == [*other.split()[:-1], "cat"]
    assert "becomes “cat”." in text(reader, "#compare-found")
    for wrong, message in (
        ("the dog is", "This text has 4 tokens, and that of the page has 5"),
        (source, "Both sentences are the same"),
    ):
        reader.write("#compare-text", wrong)
        assert text(reader, "#compare-found").startswith("The second sentence has changed")
        reader.press("#compare-form button")
        assert text(reader, "#compare-found").startswith(message)
    reader.write("#compare-text", "a cat sees it")
    reader.press("#compare-form button")
    reader.press('#compare-kinds button[data-choice="layers"]')
    found = reader.page.evaluate("npformer.patch('a cat sees it', 'layers')")
    effects = [(patch["exact"], site["path"]) for site in found["sites"] for patch in site["patches"]]
    largest = max(effects, key=lambda pair: abs(pair[0]))
    told = re.search(r"Largest effect: (\S+) (\d), [^:]+: (\S+?)[,.] ", text(reader, "#compare-found"))
    assert [told[1], told[2]] == largest[1].split(".")[:2]
    assert shown_number(told[3]) == pytest.approx(largest[0], abs=5e-3)
    rest = max(abs(effect) for effect, path in effects if path == largest[1] and effect != largest[0])
    told = re.search(r"the effect is at most (\S+)\.$", text(reader, "#compare-found"))
    assert shown_number(told[1]) == pytest.approx(rest, rel=1e-3)
    cells = reader.page.locator("#compare .lens-cell")
    assert cells.count() == len(effects)
    cells.first.click()  # of the first layer of the encoder
    assert cells.first.get_attribute("aria-pressed") == "true"
    assert reader.page.evaluate(IN_VIEW, "#compare-chosen")
    patch = found["sites"][0]["patches"][0]
    told = re.search(r"and (\S+) for yours with .* change as (\S+?):", text(reader, "#compare-chosen"))
    expected = [found["score"] + patch["exact"], patch["firstOrder"]]
    assert [shown_number(one) for one in told.groups()] == pytest.approx(expected, abs=5e-4)
    reader.press("#compare-take")
    wait_until_generated(reader.page)
    position, token, versus = (found["compared"][name] for name in ("position", "token", "versus"))
    logits = array(reader.page, "logits")[position]
    assert logits[token] - (0 if versus is None else logits[versus]) == pytest.approx(expected[0], abs=1e-12)
    assert text(reader, "#changed") == "1 change"
    assert " → " in text(reader, "#compare-outcome")
    assert reader.page.evaluate("document.activeElement.id") == "compare-take"
    is_other = of(reader, "e.session.output !== e.session.texts.target")
    assert ("the decoder reads" in text(reader, "#reference")) == is_other
    open_view(reader, "Steps")
    assert "a corner marks what changed since before" in text(reader, "#legends")
    open_view(reader, "Compare")
    reader.press('#compare-kinds button[data-choice="heads"]')  # another kind takes it out, and says so
    assert text(reader, "#changed") == ""
    assert text(reader, "#compare-outcome").startswith("Taken out: ")
    path = of(reader, "document.querySelector('#compare-chosen') && e.markedStep.path")
    values = [[index, 0.5] for index in range(5)]  # that a reader set stay
    reader.page.evaluate("([path, list]) => npformer.edit({ values: { [path]: list } })", [path, values])
    reader.press('#compare-kinds button[data-choice="layers"]')
    assert text(reader, "#changed") == "1 change"
    open_view(reader, "What if")
    assert "5 entries set" in text(reader, "#changes .result li")
    reader.page.evaluate("path => npformer.edit({ values: { [path]: [[0, 0.000999999]] } })", path)
    assert "entry 0 = 1.00·10⁻³" in text(reader, "#changes .result li")


def test_a_nudge_moves_the_loss_along_its_slope(reader):
    open_view(reader, "Check a gradient")
    assert "The gradient agrees with the slope." in text(reader, "#slope .verdict")
    assert re.search(r"\d·10[⁻⁰]", text(reader, "#slope tr:last-child"))  # how far they differ
    reader.press('#slope button[data-choice="0.1"]')
    reader.slide("#slope input[type=range]")
    told = text(reader, "#slope p[aria-live]")
    numbers = re.search(r"goes from (\S+) to (\S+); the gradient alone predicts (\S+)\.", told).groups()
    start, now, predicted = map(float, numbers)
    assert start == pytest.approx(loss(reader), abs=1e-6)
    assert now != start
    assert now - start == pytest.approx(predicted - start, rel=0.2)
    cells = reader.page.locator("#slope tbody td").all_text_contents()
    assert shown_number(cells[0]) == pytest.approx(shown_number(cells[1]), rel=1e-4)


def test_an_unknown_array_is_answered_with_names_and_without_an_old_verdict(reader):
    open_view(reader, "Check a gradient")
    assert reader.page.is_visible("#slope .verdict")
    reader.write("#slope-of-path", "inner.weight")
    reader.press("#slope form .main")
    for part in ("There is no array named “inner.weight”. ", "4 names contain it", "encoder.0.feed_forward."):
        assert part in text(reader, "#slope .told")
    assert not reader.page.is_visible("#slope .verdict")
    reader.write("#slope-of-path", "encoder.0.feed_forward.inner.weight")
    reader.write("#slope-of-place", "1, 1")
    reader.press("#slope form .main")
    assert reader.page.is_visible("#slope .verdict")


def test_a_weight_is_proposed_at_the_steps_of_the_loss(reader):
    reader.page.evaluate("npformer.explorer.goTo('loss.losses'); npformer.explorer.changed()")
    open_view(reader, "Check a gradient")
    name = reader.page.input_value("#slope-of-path")
    assert of(reader, f"e.tape.names.get('{name}').op") == "parameter"
    gradient = shown_number(text(reader, "#slope .told").rsplit("gradient ", 1)[1].rstrip("."))
    assert abs(gradient) == pytest.approx(abs(array(reader.page, name, "gradients")).max(), rel=0.01)
    reader.press("#slope form button[type=button]")
    assert reader.page.input_value("#slope-of-path") == "loss.losses"


def test_training_steps_raise_the_probabilities_of_the_right_tokens_and_are_undone(reader):
    losses = [loss(reader)]
    open_view(reader, "Teach it")
    reader.press('#training button[data-choice="adam"]')
    for _ in range(3):
        reader.press("#training .main")
        losses.append(loss(reader))
    assert losses == sorted(losses, reverse=True)
    assert text(reader, "#changed") == "3 training steps"
    open_view(reader, "Steps")
    reader.press("#changed")  # the number of the steps leads to them
    assert reader.page.is_visible("#training")
    rows = reader.page.locator("#training .words tbody tr").all()
    pairs = [[shown_number(c[:-2]) for c in r.locator("td").all_text_contents()[1:3]] for r in rows]
    assert sum(after > old for old, after in pairs) > len(pairs) / 2
    moved = reader.page.locator("#training tr:has(.follow)").all()
    moves = [abs(shown_number(each.locator("td").nth(0).text_content())) for each in moved]
    assert moves == sorted(moves, reverse=True)
    assert len(moves) == 10
    for _ in range(3):
        reader.press("#teach-single > button:last-child")
    assert loss(reader) == losses[0]
    assert reader.page.locator("#map .moved, #training tr").count() == 0
    reader.page.evaluate("for (let i = 0; i < 21; i++) npformer.step(1e-4)")
    for _ in range(20):  # as many as are kept
        reader.page.evaluate("npformer.explorer.session.undo(); npformer.explorer.renew()")
    assert text(reader, "#changed") == "1 training step"
    assert reader.page.locator("#training tr:has(.follow)").count() == 10
    reader.page.evaluate("npformer.edit({ heads: { 'encoder.0.self_attention': [0] } })")
    reader.press("#teach-forget")
    assert text(reader, "#changed") == "1 change"  # what is no training stays
    reader.page.evaluate("npformer.edit({})")
    reader.write('#training [aria-label="learning rate"]', "much")
    reader.press("#training .main")
    reader.page.locator("#message", has_text="not a positive number").wait_for()
    assert loss(reader) == losses[0]


def test_a_weight_that_moved_leads_to_its_gradient(reader):
    open_view(reader, "Teach it")
    reader.press("#training .main")
    name = reader.page.get_attribute("#training .follow", "title")
    reader.press("#training .follow")
    assert of(reader, "[e.result.path, e.direction]") == [name.split(":")[0], "backward"]


# Attention


def test_a_small_map_is_chosen_and_its_head_switched_off(reader):
    """It is marked, and the focus stays at the button when all is drawn anew."""
    open_view(reader, "Attention")
    before, switch, note = loss(reader), "#switch-head", "#attention .off"
    if isinstance(reader, Finger):
        box = reader.page.locator("#attention-maps").bounding_box()
        reader.page.tap("#attention-maps", position={"x": 110, "y": min(40, box["height"] - 5)})
    else:
        reader.choose_cell("#attention-maps")
    assert "encoder, layer 0, head 0" in text(reader, TOLD)
    assert text(reader, note) == ""
    reader.press(switch)
    assert loss(reader) != before
    assert of(reader, "e.session.edits.heads") == {"encoder.0.self_attention": [0]}
    assert "This head is off" in text(reader, note)
    wait_until_generated(reader.page)
    assert reader.page.evaluate("document.activeElement.id") == "switch-head"
    maps = 'button[aria-label="Save the picture attention-maps as SVG"]'
    assert saved(reader, maps).decode().count(">off<") == 1
    reader.press('#attention button[data-choice="mean"]')
    assert text(reader, note) == ""
    reader.press('#attention button[data-choice="weights"]')
    reader.press(switch)
    assert text(reader, note) == ""
    assert loss(reader) == before
    assert ">off<" not in saved(reader, maps).decode()


def test_the_rows_of_a_decoder_name_the_token_that_is_predicted(reader):
    open_view(reader, "Attention")
    read, predicted = (
        of(reader, f"e.session.ids.{ids}.map((id) => e.session.head.target_words[id])")
        for ids in ("targetIn", "targetOut")
    )
    rows = [f"{token} → {following}" for token, following in zip(read, predicted, strict=True)]
    assert f"has to predict “{predicted[0]}”," in text(reader, TOLD)
    for picture in ("attention-map", "attention-lines"):
        drawing = saved(reader, f'button[aria-label="Save the picture {picture} as SVG"]').decode()
        assert set(rows) <= {"".join(each.itertext()) for each in ElementTree.fromstring(drawing).iter()}
    reader.press('#attention button[data-choice="encoder.1.self_attention"]')
    assert "predict" not in text(reader, TOLD)


def test_the_shown_weights_are_those_of_the_model(reader):
    """Means over the heads, and the rollout of two layers, from the values of the weights; and gradients."""
    open_view(reader, "Attention")
    reader.press('#attention button[data-choice="decoder.1.self_attention"]')
    names = [f"decoder.{i}.self_attention.attention.weights" for i in range(2)]
    below, above = (array(reader.page, name).mean(0) for name in names)
    rollout = (above + np.eye(len(above))) / 2 @ (below + np.eye(len(below))) / 2
    for quantity, expected in (("mean", above[0, 0]), ("rollout", rollout[0, 0])):
        reader.press(f'#attention button[data-choice="{quantity}"]')
        assert shown_number(text(reader, TOLD).rsplit(" is ", 1)[1].rstrip(".")) == pytest.approx(
            expected, abs=5e-4
        )
    assert "rollout" in text(reader, TOLD)
    reader.press('#attention button[data-choice="gradients"]')
    assert "gradient of the loss" in text(reader, TOLD)
    reader.press('#attention button[data-choice="weights"]')
    before = text(reader, TOLD)
    reader.choose_cell("#attention-map")
    assert text(reader, TOLD) != before
    reader.press("#attention .controls > button")
    assert of(reader, "e.moment.step.op") == "softmax"


# What is kept


@pytest.mark.parametrize("view", VIEWS)
def test_the_pictures_of_every_view_are_saved(view, reader):
    open_view(reader, view)
    section = {
        "The model": "overview",
        "Teach it": "training",
        "Predictions": "lens",
        "What if": "changes",
        "Check a gradient": "slope",
    }.get(view, view.split()[0].lower())
    pictures = reader.page.locator(f"#{section} .picture canvas").evaluate_all("list => list.map(e => e.id)")
    assert len(pictures) == {"Attention": 4, "Predictions": 0, "Compare": 0, "Teach it": 0}.get(view, 1)
    tables = {"Predictions": ["predictions"]}.get(view, [])
    if view == "Compare":
        other = reader.page.input_value("#compare-text").split()[-1]
        tables = [f"compare-tired-{other}-{stack}" for stack in ("encoder", "decoder")]
    for name in pictures + tables:
        svg, png = (
            saved(reader, f'button[aria-label="Save the picture {name} as {kind}"]')
            for kind in ("SVG", "PNG")
        )
        assert len(list(ElementTree.fromstring(svg.decode()).iter())) > 5, name
        if view == "Predictions":  # the chosen cell is as bold as the head of the table
            columns = reader.page.locator("#lens-table thead tr > *").count()
            assert svg.count(b'font-weight="bold"') == columns + 1
        caption = re.findall(">([^<]*)</text>", svg.decode())[-1]  # the last of its lines
        told = {"Predictions": "#lens-told", "Compare": "#compare-found"}.get(view)
        label = text(reader, told).strip() if told else reader.page.get_attribute(f"#{name}", "aria-label")
        assert (label or caption).endswith(unescape(caption).strip()), name
        assert png.startswith(b"\x89PNG")
        assert len(png) > 1500
        assert text(reader, "#said") == f"Saved: {name}-the-dog-is-tired.png"


def test_the_arrays_of_a_step_are_saved(reader):
    reader.press('#direction button[data-choice="backward"]')
    data = json.loads(saved(reader, "#actions button:nth-child(4)"))
    output = data["output"]
    assert (data["direction"], output["path"]) == ("backward", of(reader, "e.moment.step.path"))
    for which in ("values", "gradients"):
        assert output[which] == array(reader.page, output["path"], which).ravel().tolist()
    assert [each["path"] for each in data["inputs"]] == of(reader, "e.moment.step.inputs.map((x) => x.path)")
    for each in data["inputs"]:
        assert each["values"] == array(reader.page, each["path"]).ravel().tolist()


def test_the_text_becomes_large(reader):
    size = "parseFloat(getComputedStyle(document.documentElement).fontSize)"
    before = reader.page.evaluate(size)
    open_view(reader, "Compare")
    reader.press("#large")
    assert reader.page.evaluate(size) > 1.4 * before
    assert "Escape leaves it" in text(reader, "#said")
    for _ in range(2):  # leaves the projector view, and then nothing
        reader.page.keyboard.press("Escape")
        assert [reader.page.evaluate(size), of(reader, "e.view")] == [before, "compare"]
        assert reader.page.evaluate("document.activeElement.id") == "large"


# The whole page


def test_space_goes_on_and_shift_space_back(chromium, html):
    with open_page(chromium, html, **DESK) as page:
        first = page.text_content("#crumbs")
        page.click('#views button:text-is("Steps")')  # a clicked button shall not catch Space
        page.keyboard.press("Space")
        assert page.text_content("#crumbs") != first
        page.keyboard.press("Shift+Space")
        assert page.text_content("#crumbs") == first


def test_no_view_is_wider_than_the_window_and_everything_has_a_name(chromium, html, html_of_gpt):
    for shown in (html, html_of_gpt):
        with open_page(chromium, shown, **DESK) as page:
            page.click("#open-form")
            for number, view in enumerate(VIEWS, 1):
                page.click(f"#views button:nth-child({number})")
                for width in (390, 1280, 1920):
                    page.set_viewport_size({"width": width, "height": 900})
                    assert page.evaluate("document.documentElement.scrollWidth") <= width, view
                    assert page.evaluate(UNNAMED) == [], view
            page.set_viewport_size(DESK["viewport"])


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
            visit(page, wrong)
            assert page.evaluate("Number.isFinite(npformer.loss())")
            assert page.evaluate("npformer.explorer.view") == "steps"
