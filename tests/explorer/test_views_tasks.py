"""What the tasks of a reader promise: each with the keyboard alone, and with a finger alone on a phone.

test_views.py has a test for each control. Here are the results: what is computed, shown, saved and linked.
"""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from browser import open_page
from page_steps import wait_until_generated, wait_until_ready
from readers import DESK, Finger, open_view

pytestmark = pytest.mark.browser


def loss(reader):
    return reader.page.evaluate("npformer.loss()")


def number(text):
    """Return the number in a text of the page, such as "1.60·10⁻⁵"."""
    plain = text.replace("−", "-").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return float(plain.replace("·10", "e"))


def row(reader, view, name):
    """Return the cells of a row of the comparison of a view."""
    cells = reader.page.locator(f"#{view} .comparison tr", has=reader.page.locator(f"th:text-is('{name}')"))
    return cells.first.locator("td").all_text_contents()


def saved(reader, selector):
    with reader.page.expect_download() as download:
        reader.press(selector)
    return download.value.path().read_bytes()


# 1 and 2: the sentence and the model


def test_all_numbers_are_those_of_the_typed_pair(reader):
    reader.press("#open-form")
    reader.write("#source-input", "a cat sees it")
    reader.write("#target-input", "un chat")
    reader.press("#sentence-form .main")
    assert "The loss is that of “un chat”." in reader.page.text_content("#reference")
    logits = reader.page.evaluate("npformer.shape('logits')")
    assert logits[0] == 3  # two words and the end symbol
    shown = reader.page.text_content("#loss")
    assert number(shown) == pytest.approx(loss(reader), abs=5e-4)


def test_the_path_of_the_step_is_highlighted_in_the_model(reader):
    """Forward, all that it depends on; backward, all that depends on it."""
    blocks = """kind => [...document.querySelectorAll(`.block.${kind}`)].map(e => e.dataset.block)"""
    forward = set(reader.page.evaluate(blocks, "on-path"))
    assert {"source", "target", "encoder.1.feed_forward", "decoder.1.cross"} <= forward
    assert not {"output", "loss", "decoder.1.feed_forward"} & forward
    reader.press('#direction button[data-choice="backward"]')
    backward = set(reader.page.evaluate(blocks, "on-path"))
    assert {"output", "loss", "decoder.1.feed_forward", "decoder.1.cross"} <= backward
    assert not {"source", "target", "decoder.0.cross"} & backward


# 3 and 4: the steps and their arithmetic


def test_every_step_of_both_passes_is_reached_and_shows_its_line(reader):
    """All steps have code, a sentence and a number, and behind the last one the button Next is off."""
    for direction, fewest in (("forward", 100), ("backward", 150)):
        reader.press(f'#direction button[data-choice="{direction}"]')
        reader.page.evaluate("npformer.explorer.goToPosition(0); npformer.explorer.changed()")
        count = reader.page.evaluate("npformer.explorer.timeline.length")
        assert count >= fewest
        reader.press("#actions .main")
        assert f"step 2 of {count}" in reader.page.text_content("#crumbs")
        missing = reader.page.evaluate("""() => {
            const text = (id) => document.getElementById(id).textContent.trim(), missing = [];
            const { explorer } = npformer;
            for (let i = 0; i < explorer.timeline.length; i++) {
                explorer.goToPosition(i);
                explorer.changed();
                if (!document.querySelector("#code .now")?.textContent || !text("step-sentence"))
                    missing.push(explorer.moment.step.path);
                if (!/\\d/.test(document.querySelector("#arithmetic output").textContent))
                    missing.push(explorer.moment.step.path);
            }
            return missing;
        }""")
        assert missing == []
        assert reader.page.is_disabled("#actions .main")


def test_the_cells_that_took_part_are_lit_and_lead_on(reader):
    """A chosen cell of the result stays when it is pinned, and the term leads to its own terms."""
    reader.choose_cell("#step")
    if not isinstance(reader, Finger):  # a tap pins, as a click does
        reader.page.keyboard.press("Enter")
    assert "pinned" in reader.page.text_content("#arithmetic")
    before = reader.page.evaluate("npformer.explorer.tape.names.size")
    path = []
    for _ in range(3):
        reader.press("#arithmetic .follow")
        path.append(reader.page.evaluate("npformer.explorer.result.path"))
        assert "pinned" in reader.page.text_content("#arithmetic")
    assert len(set(path)) == 3
    assert reader.page.evaluate("npformer.explorer.tape.names.size") == before


# 5: what if


def cross_entropy(reader):
    """Return the mean of -log p(target), from the log-probabilities of the page."""
    width = reader.page.evaluate("npformer.shape('loss.log_probs')[1]")
    log_probs = reader.page.evaluate("Array.from(npformer.values('loss.log_probs'))")
    targets = reader.page.evaluate("npformer.explorer.session.ids.targetOut")
    return -sum(log_probs[t * width + target] for t, target in enumerate(targets)) / len(targets)


def test_the_loss_says_that_it_contains_label_smoothing(reader):
    told = reader.page.text_content("#smoothing")
    start, end = "with label smoothing 0.1; cross-entropy ", " without it"
    assert told.startswith(start)
    assert told.endswith(end)
    shown = number(told.removeprefix(start).removesuffix(end))
    assert shown == pytest.approx(cross_entropy(reader), abs=5e-4)
    assert abs(shown - loss(reader)) > 0.01


def test_before_and_after_stand_side_by_side(reader):
    before, plain_before = loss(reader), cross_entropy(reader)
    open_view(reader, "What if")
    reader.press("#changes .row button")
    wait_until_generated(reader.page)
    cells = row(reader, "changes", "Loss with label smoothing 0.1")
    assert [number(cells[0]), number(cells[1])] == pytest.approx([before, loss(reader)], abs=5e-4)
    assert number(cells[2].lstrip("+")) == pytest.approx(loss(reader) - before, abs=5e-4)
    cells = row(reader, "changes", "Cross-entropy without it")
    assert [number(cells[0]), number(cells[1])] == pytest.approx(
        [plain_before, cross_entropy(reader)], abs=5e-4
    )
    after = reader.page.evaluate("npformer.explorer.session.output")
    assert row(reader, "changes", "Translation")[1] == after == reader.page.text_content("#target-text")
    rows = [
        r.locator("td").all_text_contents() for r in reader.page.locator("#changes .words tbody tr").all()
    ]
    assert len(rows) == reader.page.evaluate("npformer.shape('logits')[0]")
    for _, old, now, change, _ in rows:  # in percent, rounded
        moved = number(now.rstrip(" %")) - number(old.rstrip(" %"))
        assert number(change) == pytest.approx(moved, abs=0.16)
    assert any(number(change[3]) for change in rows)


def test_a_mask_is_replaced_and_restored(reader):
    before = loss(reader)
    open_view(reader, "What if")
    found = []
    for number_of_button in (1, 2, 3):  # everything, causal, window
        reader.press(f"#changes .controls:has(+ .picture) button:nth-child({number_of_button})")
        found.append(loss(reader))
    allowed = "npformer.explorer.tape.names.get('decoder.1.cross.attention.masked').note.allowed"
    queries, keys = reader.page.evaluate("npformer.shape('decoder.1.cross.attention.masked').slice(1)")
    window = [int(abs(t - s) <= 2) for t in range(queries) for s in range(keys)]
    assert reader.page.evaluate(f"Array.from({allowed})") == window
    assert found[0] == before  # cross-attention may attend to every word of the source
    assert len({before, *found[1:]}) == 3
    reader.press("#changes .controls:has(+ .picture) button:nth-child(4)")
    assert loss(reader) == before


def test_dropout_acts_where_it_is_chosen(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.press("#changes summary")
    reader.press("#changes details .choice button")
    dropped = reader.page.evaluate("npformer.explorer.session.edits.dropout?.['source.dropout_mask'] ?? []")
    assert bool(dropped) == (loss(reader) != before)
    mask = reader.page.evaluate("Array.from(npformer.values('source.dropout_mask') ?? [])")
    assert [i for i, x in enumerate(mask) if x == 0] == dropped
    reader.press("#changes details .choice button")
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
        told = reader.page.text_content("#changes .comparison")
        assert ("in opposite directions" in told) == is_opposite


@pytest.mark.parametrize("button", ["li button", ".controls button:first-child"], ids=["one", "all"])
def test_the_focus_is_on_the_list_after_a_change_is_removed(button, reader):
    open_view(reader, "What if")
    reader.press("#changes .row button")
    reader.press("#copy-link")
    assert "it keeps the sentence, your changes, the tab “What if”" in reader.page.text_content("#dialog")
    reader.page.keyboard.press("Escape")
    reader.press(f"#changes .result {button}")
    wait_until_generated(reader.page)
    assert reader.page.evaluate("document.activeElement.textContent").startswith("Nothing is changed.")
    assert reader.page.text_content("#changed") == ""


def test_the_activation_is_replaced(reader):
    before = loss(reader)
    open_view(reader, "What if")
    reader.press('#changes button[data-choice="gelu"]')
    assert loss(reader) != before
    assert reader.page.evaluate("npformer.paths().includes('encoder.0.feed_forward.hidden.activation.1')")
    assert "Activation: gelu in place of relu" in reader.page.text_content("#changes .result li")
    assert reader.page.text_content("#changed") == "1 change"
    changed, link = loss(reader), reader.page.evaluate("location.hash")
    reader.page.evaluate("npformer.set_sentence('a cat sees it')")
    assert reader.page.text_content("#changed") == "1 change"  # as heads that are off, it stays
    reader.page.goto("about:blank")
    reader.page.goto(f"http://page.test/{link}")
    wait_until_ready(reader.page)
    assert loss(reader) == changed
    reader.press("#changes .result li button")
    assert loss(reader) == before
    reader.page.goto("about:blank")
    reader.page.goto('http://page.test/#edits={"settings":{"activation":"swiglu","n_layers":1}}')
    wait_until_ready(reader.page)
    assert loss(reader) == before


def test_a_weight_is_set(reader):
    before = loss(reader)
    open_view(reader, "What if")
    name = "encoder.0.feed_forward.inner.weight"
    reader.write("#value-of-path", name)
    reader.write("#value-of-place", "2, 3")
    reader.write("#value-of-value", "-1.5")
    reader.press("#changes form .main")
    columns = reader.page.evaluate(f"npformer.shape('{name}')[1]")
    assert reader.page.evaluate(f"npformer.values('{name}')[{2 * columns + 3}]") == -1.5
    assert loss(reader) != before
    reader.press("#changes .result li button")
    assert loss(reader) == before


# 6 and 7: gradients and training


def test_a_nudge_moves_the_loss_along_its_slope(reader):
    open_view(reader, "Check a gradient")
    reader.press('#slope button[data-choice="0.1"]')
    reader.slide("#slope input[type=range]")
    told = reader.page.text_content("#slope p[aria-live]")
    numbers = re.findall(r"goes from (\S+) to (\S+); the gradient alone predicts (\S+)\.", told)[0]
    start, now, predicted = map(float, numbers)
    assert start == pytest.approx(loss(reader), abs=1e-6)
    assert now != start
    assert now - start == pytest.approx(predicted - start, rel=0.2)
    cells = reader.page.locator("#slope tbody td").all_text_contents()
    assert float(cells[0]) == pytest.approx(float(cells[1]), rel=1e-4)


def test_an_unknown_array_is_answered_with_names_and_without_an_old_verdict(reader):
    open_view(reader, "Check a gradient")
    assert reader.page.is_visible("#slope .verdict")
    reader.write("#slope-of-path", "inner.weight")
    reader.press("#slope form .main")
    told = reader.page.text_content("#slope .told")
    assert "There is no array named “inner.weight”. " in told
    assert "4 names contain it" in told
    assert "encoder.0.feed_forward.inner.weight" in told
    assert not reader.page.is_visible("#slope .verdict")
    reader.write("#slope-of-path", "encoder.0.feed_forward.inner.weight")
    reader.write("#slope-of-place", "1, 1")
    reader.press("#slope form .main")
    assert reader.page.is_visible("#slope .verdict")


def test_a_weight_is_proposed_at_the_steps_of_the_loss(reader):
    reader.page.evaluate("npformer.explorer.goTo('loss.losses'); npformer.explorer.changed()")
    open_view(reader, "Check a gradient")
    name = reader.page.input_value("#slope-of-path")
    assert reader.page.evaluate(f"npformer.explorer.tape.names.get('{name}').op") == "parameter"
    largest = f"Math.max(...npformer.gradients('{name}').map(Math.abs))"
    gradient = number(reader.page.text_content("#slope .told").rsplit("gradient ", 1)[1].rstrip("."))
    assert abs(gradient) == pytest.approx(reader.page.evaluate(largest), rel=0.01)
    reader.press("#slope form button[type=button]")
    assert reader.page.input_value("#slope-of-path") == "loss.losses"


def test_steps_of_adam_raise_the_probabilities_of_the_right_tokens(reader):
    losses = [loss(reader)]
    open_view(reader, "Training step")
    reader.press('#training button[data-choice="adam"]')
    for _ in range(3):
        reader.press("#training .main")
        losses.append(loss(reader))
    assert losses == sorted(losses, reverse=True)
    assert reader.page.text_content("#changed") == "3 training steps"
    open_view(reader, "Steps")
    reader.press("#changed")  # the number of the steps leads to them
    assert reader.page.is_visible("#training")
    rows = reader.page.locator("#training .words tbody tr").all()
    pairs = [[number(c[:-2]) for c in r.locator("td").all_text_contents()[1:3]] for r in rows]
    assert sum(after > old for old, after in pairs) > len(pairs) / 2
    moves = [
        abs(number(r.locator("td").nth(2).text_content()))
        for r in reader.page.locator("#training tr:has(.follow)").all()
    ]
    assert moves == sorted(moves, reverse=True)
    assert len(moves) == 10
    for _ in range(3):
        reader.press("#training .controls > button:last-child")
    assert loss(reader) == losses[0]


def test_a_weight_that_moved_leads_to_its_gradient(reader):
    open_view(reader, "Training step")
    reader.press("#training .main")
    name = reader.page.text_content("#training .follow")
    reader.press("#training .follow")
    assert reader.page.evaluate("npformer.explorer.result.path") == name.split("[")[0]
    assert reader.page.evaluate("npformer.explorer.direction") == "backward"


# 8: attention


def test_a_small_map_is_chosen_and_its_head_switched_off(reader):
    open_view(reader, "Attention")
    before = loss(reader)
    if isinstance(reader, Finger):
        box = reader.page.locator("#attention-maps").bounding_box()
        reader.page.tap("#attention-maps", position={"x": 110, "y": min(40, box["height"] - 5)})
    else:
        reader.choose_cell("#attention-maps")
    assert "encoder, layer 1, head 1" in reader.page.text_content("#attention p[aria-live]")
    reader.press("#switch-head")
    assert loss(reader) != before
    assert reader.page.evaluate("npformer.explorer.session.edits.heads") == {"encoder.0.self_attention": [0]}


def test_the_rows_of_a_decoder_name_the_token_that_is_predicted(reader):
    open_view(reader, "Attention")
    read, predicted = reader.page.evaluate(
        """(() => {
            const { head, ids } = npformer.explorer.session;
            return [ids.targetIn, ids.targetOut].map((list) => list.map((id) => head.target_words[id]));
        })()"""
    )
    rows = [f"{token} → {following}" for token, following in zip(read, predicted, strict=True)]
    assert f"has to predict “{predicted[0]}”," in reader.page.text_content("#attention p[aria-live]")
    for picture in ("attention-map", "attention-lines"):
        drawing = saved(reader, f'button[aria-label="Save the picture {picture} as SVG"]').decode()
        shown = ["".join(each.itertext()) for each in ElementTree.fromstring(drawing).iter()]
        assert set(rows) <= set(shown)
    reader.press('#attention button[data-choice="encoder.1.self_attention"]')
    assert "predict" not in reader.page.text_content("#attention p[aria-live]")


def test_a_head_that_is_off_is_marked_and_the_focus_stays(reader):
    open_view(reader, "Attention")
    switch, note = "#switch-head", "#attention .off"
    assert reader.page.text_content(note) == ""
    reader.press(switch)
    assert reader.page.evaluate("document.activeElement.id") == "switch-head"
    assert "This head is off" in reader.page.text_content(note)
    wait_until_generated(reader.page)  # all is drawn anew then
    assert reader.page.evaluate("document.activeElement.id") == "switch-head"
    drawing = saved(reader, 'button[aria-label="Save the picture attention-maps as SVG"]').decode()
    assert drawing.count(">off<") == 1
    reader.press('#attention button[data-choice="mean"]')
    assert reader.page.text_content(note) == ""
    reader.press('#attention button[data-choice="weights"]')
    reader.press(switch)
    assert reader.page.text_content(note) == ""
    drawing = saved(reader, 'button[aria-label="Save the picture attention-maps as SVG"]').decode()
    assert ">off<" not in drawing


def test_the_shown_weights_are_those_of_the_model(reader):
    """Means over the heads, and the rollout of two layers, from the values of the weights."""
    open_view(reader, "Attention")
    reader.press('#attention button[data-choice="decoder.1.self_attention"]')
    names = [f"decoder.{i}.self_attention.attention.weights" for i in range(2)]
    layers = [reader.page.evaluate(f"Array.from(npformer.values('{name}'))") for name in names]
    size = reader.page.evaluate(f"npformer.shape('{names[0]}')[1]")
    means = [[(w[i] + w[size * size + i]) / 2 for i in range(size * size)] for w in layers]
    rows = [[[m[i * size + j] for j in range(size)] for i in range(size)] for m in means]
    below, above = [
        [[(x + (i == j)) / 2 for j, x in enumerate(line)] for i, line in enumerate(each)] for each in rows
    ]
    product = sum(above[0][k] * below[k][0] for k in range(size))
    for quantity, expected in (("mean", means[1][0]), ("rollout", product)):
        reader.press(f'#attention button[data-choice="{quantity}"]')
        told = reader.page.text_content("#attention p[aria-live]")
        assert number(told.rsplit(" is ", 1)[1].rstrip(".")) == pytest.approx(expected, abs=5e-4)


# 9: what is kept


def test_a_link_shows_the_view_in_a_new_page(reader, chromium, html):
    open_view(reader, "Training step")
    reader.press("#training .main")
    open_view(reader, "What if")
    reader.press("#changes .row button")
    open_view(reader, "Steps")
    reader.press('#direction button[data-choice="backward"]')
    reader.press("#actions .main")
    reader.choose_cell("#step")
    reader.press("#copy-link")
    state = "[npformer.loss(), npformer.explorer.result.path, npformer.explorer.index]"
    expected, link = reader.page.evaluate(state), reader.page.url.split("#")[1]
    with open_page(chromium, html, **DESK) as page:
        page.goto("about:blank")
        page.goto(f"http://page.test/#{link}")
        wait_until_ready(page)
        assert page.evaluate(state) == expected
        assert page.text_content("#changed") == "1 change, 1 training step"


@pytest.mark.parametrize("view", ["Steps", "Attention", "What if", "Check a gradient", "Training step"])
def test_the_pictures_of_every_view_are_saved(view, reader):
    open_view(reader, view)
    section = {"Steps": "steps", "What if": "changes", "Check a gradient": "slope"}.get(view, view.split()[0])
    pictures = reader.page.locator(f"#{section.lower()} .picture canvas").evaluate_all(
        "list => list.map(e => e.id)"
    )
    assert len(pictures) == (4 if view == "Attention" else 1)
    for name in pictures:
        svg = saved(reader, f'button[aria-label="Save the picture {name} as SVG"]')
        shapes = list(ElementTree.fromstring(svg.decode()).iter())
        assert len(shapes) > 5, name
        png = saved(reader, f'button[aria-label="Save the picture {name} as PNG"]')
        assert png.startswith(b"\x89PNG")
        assert len(png) > 1500


def test_the_arrays_of_a_step_are_saved(reader):
    reader.press('#direction button[data-choice="backward"]')
    data = json.loads(saved(reader, "#actions button:nth-child(4)"))
    output = data["output"]
    assert output["gradients"] == reader.page.evaluate(f"Array.from(npformer.gradients('{output['path']}'))")
    assert [len(each["values"]) for each in data["inputs"]] == [
        reader.page.evaluate(f"npformer.values('{each['path']}').length") for each in data["inputs"]
    ]
    assert data["direction"] == "backward"


def test_the_code_of_the_backward_pass_has_its_line_marked(reader):
    reader.press('#direction button[data-choice="backward"]')
    reader.press("#actions button:nth-child(3)")
    marked = reader.page.locator("#dialog .marked").all_text_contents()
    assert any("dq = dscores @ k" in line for line in marked)
    assert reader.page.locator("#dialog .marked").first.is_visible()
    reader.press("#dialog button")
    assert not reader.page.evaluate("document.getElementById('dialog').open")
