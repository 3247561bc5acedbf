"""The overview: the sentence flows through the model, a block opens into its steps, and the reader writes."""

import numpy as np
import pytest
from browser import open_page, visit
from page_steps import wait_until_ready
from readers import DESK
from word_translator import word_translator

from npformer.explorer import explore
from npformer.generation.sampling import token_probabilities

pytestmark = pytest.mark.browser

SAMPLINGS = [(1, None, None), (0.7, 5, None), (1.6, None, 0.6), (0.4, 12, 0.9)]
PROBABILITIES = """([tokens, temperature, topK, topP]) => {
    const { writer } = npformer;
    writer.update();
    Object.assign(writer, { tokens, sampling: { temperature, topK, topP } });
    writer.update();
    return [...writer.probabilities];
}"""

WAIT = """new Promise((resolve) => {
    const look = () => (%s) ? resolve() : setTimeout(look, 20);
    look();
})"""


def wait_for(page, condition):
    """Wait until a condition holds on the page, whose policy forbids to evaluate a text there."""
    page.evaluate(WAIT % condition)


@pytest.fixture
def page(chromium, html):
    with open_page(chromium, html, **DESK) as opened:
        visit(opened)
        wait_until_ready(opened)
        yield opened


@pytest.mark.parametrize("kind", ["translator", "gpt"])
def test_the_probabilities_of_the_next_token_are_those_of_the_package(kind, chromium, loaded_gpt):
    loaded, text = (
        (word_translator(), "the dog is tired") if kind == "translator" else (loaded_gpt(), "the cat")
    )
    model = loaded.model.astype(np.float32).astype(np.float64)
    with open_page(chromium, explore(loaded, text).html) as page:
        wait_until_ready(page)
        for tokens, sampling in zip(([4, 7], [9], [5, 6, 8], [4]), SAMPLINGS, strict=True):
            ids = np.array([tokens])
            if kind == "translator":
                start = [[model.config.start_id]]
                source = np.array([page.evaluate("npformer.explorer.session.ids.source")])
                logits = model.forward(source, np.concatenate([start, ids], 1))[0][:, -1]
                logits[:, [model.config.pad_id, model.config.start_id, 1]] = -np.inf
            else:
                logits = model.forward(ids)[0][:, -1]
            temperature, top_k, top_p = sampling
            expected = token_probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)[0]
            found = np.array(page.evaluate(PROBABILITIES, [tokens, *sampling]))
            assert np.abs(found - expected).max() <= 1e-12
            assert ((found > 0) == (expected > 0)).all()
        greedy = page.evaluate(PROBABILITIES, [tokens, 0, None, None])
        assert [greedy.index(1), sum(greedy)] == [int(logits.argmax()), 1]


def test_a_reader_writes_with_the_model(page):
    state = "(({ tokens, isDone }) => [tokens.length, isDone])"
    page.keyboard.press("Space")
    assert page.evaluate(f"{state}(npformer.writer)")[0] == 1
    bars = page.locator(".next-token")
    assert bars.count() == 8
    word = bars.nth(2).locator("b").text_content()
    bars.nth(2).click()
    assert page.locator(".written .token").last.text_content() == word
    page.fill("#write-topK", "3")
    assert page.locator(".next-token:disabled").count() == 5
    page.locator(".written .token").first.click()
    assert page.evaluate("npformer.writer.tokens") == []
    page.click('#write button:text-is("Write to the end")')
    assert page.evaluate(f"{state}(npformer.writer)")[1]
    tokens = page.evaluate("npformer.writer.tokens")
    page.click('#write button:text-is("Send this text through the model")')
    assert page.evaluate("npformer.explorer.session.ids.targetOut")[: len(tokens) - 1] == tokens[:-1]


def test_the_sentence_flows_through_the_model_and_a_block_opens(page):
    assert page.evaluate("npformer.explorer.view") == "overview"
    page.click('#overview button:text-is("Play")')
    wait_for(page, "npformer.overview.stage > 0.2 && npformer.overview.stage < 99")
    page.click('#overview button:text-is("Stop")')
    stage = page.evaluate("npformer.overview.stage")
    page.click('button[aria-label="One block more"]')
    assert page.evaluate("npformer.overview.stage") == int(stage) + 1
    page.click('#overview button:text-is("Backward")')
    wait_for(page, "npformer.overview.isBackward && npformer.overview.frame > 0")
    page.evaluate("npformer.overview.stage = 99")  # the end
    wait_for(page, "npformer.overview.frame === 0")
    times = sorted(page.evaluate("npformer.overview.times"))
    assert times[len(times) // 2] <= 16  # ms of script for a frame
    page.keyboard.press("f")
    page.focus("#overview-picture")
    for key in ("ArrowUp", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert "“the” attends most to “" in page.text_content("#overview .told")
    page.keyboard.press("Enter")
    wait_for(page, "npformer.explorer.view === 'steps'")
    assert "self-attention" in page.text_content("#crumbs")
    page.keyboard.press("Escape")
    assert page.is_visible("#overview-picture")


def test_without_motion_the_stages_stand_still(chromium, html):
    with open_page(chromium, html, **DESK, reduced_motion="reduce") as page:
        visit(page)
        for stage in (1, 2):
            page.click('#overview button:text-is("Play")')
            assert page.evaluate("[npformer.overview.stage, npformer.overview.frame]") == [stage, 0]
