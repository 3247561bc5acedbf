"""Where the gradient of a token comes from: from which predictions, and through which blocks."""

import base64
import re

import numpy as np
import pytest
from browser import open_page
from engine_page import open_engine
from page_numbers import array, shown_number
from page_steps import wait_until
from pass_record import PassRecord
from readers import DESK
from tiny import tiny_model
from word_translator import word_translator

from npformer.explorer.page import make_page
from npformer.explorer.recorded import recorded_data

pytestmark = pytest.mark.browser

SOURCE, TARGET_IN, TARGET_OUT = [4, 5, 6, 7, 10, 3], [2, 4, 7, 5, 8], [4, 7, 5, 8, 3]
PATHS = ["source.y", "source.tokens.weight", "decoder.1.cross.attention.scores", "logits"]


@pytest.fixture(scope="module")
def engine(chromium):
    with open_engine(chromium) as opened:
        yield opened


def by_position(engine, path, shape):
    parts = engine.call("byPosition", path)
    return [np.frombuffer(base64.b64decode(part)).reshape(shape) for part in parts]


def test_the_part_of_a_position_is_the_gradient_of_its_loss_alone(engine):
    model = tiny_model(norm="pre", final_norm=True)
    engine.make(model)
    engine.run(SOURCE, TARGET_IN, TARGET_OUT)
    before = engine.arrays()
    parts = {path: by_position(engine, path, before[path][1].shape) for path in PATHS}
    tolerances = {path: {"rtol": 0, "atol": 1e-12 * np.abs(before[path][1]).max()} for path in PATHS}
    for path in PATHS:
        np.testing.assert_allclose(sum(parts[path]), before[path][1], **tolerances[path])
    for t in range(len(TARGET_OUT)):
        alone = [token if place == t else 0 for place, token in enumerate(TARGET_OUT)]  # 0 is padding
        record = PassRecord(model, (SOURCE, TARGET_IN, alone))
        for path in PATHS:
            expected = record.grads[path] / len(TARGET_OUT)
            np.testing.assert_allclose(parts[path][t], expected, **tolerances[path])
    after = engine.arrays()  # the last run is as it was
    for name, (values, gradient) in before.items():
        assert np.array_equal(values, after[name][0], equal_nan=True)
        assert np.array_equal(gradient, after[name][1])


def test_padding_sends_no_gradient(engine):
    model = tiny_model()
    engine.make(model)
    engine.run(SOURCE, [*TARGET_IN, 0], [*TARGET_OUT, 0])
    whole = engine.arrays()["source.y"][1]
    parts = by_position(engine, "source.y", whole.shape)
    assert not parts[-1].any()
    np.testing.assert_allclose(sum(parts), whole, rtol=0, atol=1e-12 * np.abs(whole).max())


def test_the_share_of_a_block_is_the_part_of_the_gradient_that_it_sent(engine):
    """With pre-norm, the embedding is copied around the first sublayer, and normalized for it."""
    model = tiny_model(norm="pre", final_norm=True)
    engine.make(model)
    engine.run(SOURCE, TARGET_IN, TARGET_OUT)
    arrays = engine.arrays()
    width = model.config.d_model
    for row in range(len(SOURCE)):
        path, found = engine.call("senders", "source.tokens.y", row * width, width)
        assert path == "source.sum"  # behind the sum with the positions
        whole = arrays["source.y"][1][row]
        copied = arrays["encoder.0.add1.sum"][1][row]
        shares = dict(found)
        assert shares["encoder.0.add1.sum"] == pytest.approx(copied @ whole / (whole @ whole))
        assert sum(shares.values()) == pytest.approx(1)
        assert all("encoder.0.add1" in sender or "encoder.0.norm1" in sender for sender in shares)


# the page


def go_to(page, path):
    """Go to the gradient of an array."""
    page.evaluate(
        """path => {
            const { explorer } = npformer;
            explorer.setDirection("backward");
            explorer.goToPosition(explorer.timeline.findIndex(
                ({ step, which }) => step.inputs[which].path === path));
            explorer.changed();
        }""",
        path,
    )


def lists(page):
    """Return {title: [(label, number)]} of the unfolded answer."""
    wait_until(page, "document.querySelector('#why .reasons li')")  # the browser tells of the unfolding later
    return {
        box.locator("h3").text_content(): [
            [item.locator(">*").first.text_content(), item.locator(">*").last.text_content()]
            for item in box.locator("li").all()
        ]
        for box in page.locator("#why .reasons > div").all()
    }


def test_the_page_says_why_the_gradient_of_a_token_is_the_largest(reader):
    go_to(reader.page, "source.tokens.y")
    norms = np.linalg.norm(array(reader.page, "source.y", "gradients"), axis=1)
    word = ["the", "dog", "is", "tired", "</S>"][norms.argmax()]
    assert reader.page.text_content("#why summary") == f"Why is the gradient of “{word}” the largest?"
    reader.press("#why summary")
    found = lists(reader.page)
    predictions, blocks, rows = found.values()
    for shares in (predictions, blocks):
        percents = [int(text.rstrip(" %").replace("−", "-")) for _, text in shares]
        assert sum(percents) == pytest.approx(100, abs=4)
        assert percents[:-1] == sorted(percents[:-1], key=abs, reverse=True)  # the last may be all others
    shown = [shown_number(text) for _, text in rows]
    np.testing.assert_allclose(shown, sorted(norms, reverse=True), rtol=0.01)
    answer = reader.page.text_content("#why p")
    assert predictions[0][0] in answer
    small = [label for label, text in predictions if text in ("0 %", "−0 %")]
    assert not any(f"{label} (" in answer for label in small)
    losses = reader.page.evaluate("npformer.explorer.tape.names.get('loss.losses').data")
    said = [shown_number(text) for text in re.findall(r"is ([\d.]+?)[;.](?: |$)", answer)]
    assert any(said[0] == pytest.approx(loss, rel=0.01) for loss in losses)
    assert said[1] == pytest.approx(np.mean(losses), rel=0.01)


def test_a_pinned_number_asks_for_the_gradient_of_its_row(reader):
    go_to(reader.page, "source.tokens.y")
    reader.press("#why summary")
    first = lists(reader.page)
    smallest = list(first.values())[2][-1][0]
    row = ["“the”", "“dog”", "“is”", "“tired”", "“</S>”"].index(smallest)
    reader.page.evaluate(
        "row => { const { explorer } = npformer; explorer.index = 8 * row; explorer.isPinned = true; "
        "explorer.changed(); }",
        row,
    )
    assert reader.page.text_content("#why summary") == f"Where the gradient of {smallest} comes from"
    assert list(lists(reader.page).values())[1] != list(first.values())[1]


def test_the_answer_follows_a_change_and_a_block_leads_to_the_gradient_that_it_sent(reader):
    go_to(reader.page, "source.tokens.y")
    reader.press("#why summary")
    before = lists(reader.page)
    reader.page.evaluate("npformer.edit({ heads: { 'decoder.1.cross': [0, 1] } })")
    assert lists(reader.page) != before
    reader.press("#why .follow")
    assert reader.page.evaluate("npformer.explorer.result.path").startswith(
        ("encoder.0.self_", "encoder.0.add1", "encoder.0.norm1")
    )
    assert "pinned" in reader.page.text_content("#arithmetic")


def test_values_and_arrays_without_tokens_have_no_such_answer(reader):
    assert not reader.page.is_visible("#why")
    go_to(reader.page, "encoder.0.feed_forward.inner.weight")
    assert not reader.page.is_visible("#why")


def test_a_recorded_page_names_the_blocks_alone(chromium):
    data = recorded_data(word_translator(), "the dog is tired", None)
    with open_page(chromium, make_page(data.head, data.arrays).html, **DESK) as page:
        go_to(page, "source.tokens.y")
        page.click("#why summary")
        assert list(lists(page)) == ["Through which blocks it comes", "The L2 norm of each row"]
