"""The overview: the sentence flows through the model, a block opens into its steps, and the reader writes."""

import re

import numpy as np
import pytest
from browser import open_page, visit
from page_steps import wait_until_ready
from readers import DESK
from word_translator import word_translator

from npformer.explorer import explore
from npformer.generation.sampling import token_probabilities
from npformer.lenses import Output, attribution_of, layer_logits
from npformer.lenses.patching import ACTIVATIONS, patching_of

pytestmark = pytest.mark.browser

SAMPLINGS = [(1, None, None), (0.7, 5, None), (1.6, None, 0.6), (0.4, 12, 0.9)]
PROBABILITIES = """([tokens, temperature, topK, topP]) => {
    const { writer } = npformer;
    writer.update();
    Object.assign(writer, { tokens, sampling: { temperature, topK, topP } });
    writer.update();
    return [...writer.probabilities];
}"""

# of the second word, below the model
PLACE_OF_WORD = """(({ flow, picture }) => {
    const box = flow.blocks[0],
        width = (box.x + box.width - box.left - 12) / box.tokens.length;
    return [box.left + 6 + 1.5 * width, flow.base + 14].map((x) => x * picture.zoom);
})(npformer.overview)"""

# the head and the query of the chosen number
PLACE = """(({ explorer: { index, result: { shape: [, queries, keys] } } }) =>
    [Math.floor(index / queries / keys), Math.floor(index / keys) % queries])(npformer)"""

WAIT = """new Promise((resolve, reject) => {
    const end = performance.now() + 60000, fail = () => reject(new Error("a minute has passed"));
    const look = () => (%s) ? resolve() : performance.now() < end ? setTimeout(look, 20) : fail();
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


LLAMA = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "n_kv_heads": 1, "bias": False}


def label_of(name, path):
    """Return the label of a part in the package for its name and its array on the page."""
    found = re.match(r"(?:decoder|layers)\.(\d+)\.", path)
    if not found:
        return "embedding" if name == "embedding" else "biases of the output"
    kind = {"bias": "biases"}.get(name, f"head {name}" if name.isdigit() else name)
    return f"layer {found[1]} {'cross ' if '.cross.' in path and name.isdigit() else ''}{kind}"


@pytest.mark.parametrize("kind", ["post", "pre", "gpt", "llama"])
def test_the_lens_and_the_attribution_are_those_of_the_package(kind, chromium, loaded_gpt):
    """The predictions of every layer, and each part of a logit, of which the parts are the sum."""
    if kind in ("post", "pre"):
        loaded, text = word_translator(norm=kind, final_norm=kind == "pre"), "the dog is tired"
    else:
        loaded, text = loaded_gpt(**LLAMA if kind == "llama" else {}), "the cat"
    model = loaded.model.astype(np.float32).astype(np.float64)
    with open_page(chromium, explore(loaded, text).html) as page:
        wait_until_ready(page)
        ids = page.evaluate("npformer.explorer.session.ids")
        inputs = [np.array([ids[side]]) for side in ("source", "targetIn") if ids[side]]
        expected = list(layer_logits(model, inputs))
        for found, logits in zip(
            page.evaluate("npformer.layer_logits().map((a) => [...a])"), expected, strict=True
        ):
            assert np.abs(np.reshape(found, logits.shape) - logits).max() <= 1e-12 * np.abs(logits).max()
        attribution = attribution_of(model, inputs, Output(2, 5), "five")
        parts = page.evaluate("npformer.attribution(2, 5)")
        logit = page.evaluate("npformer.values('logits')[2 * npformer.shape('logits')[1] + 5]")
        assert sum(value for *_, value in parts) == pytest.approx(logit, abs=1e-12)
        sums = dict.fromkeys((part.label for part in attribution.parts), 0.0)
        for name, path, value in parts:
            sums[label_of(name, path)] += value
        assert sums == {part.label: pytest.approx(part.value, abs=1e-12) for part in attribution.parts}
        other = "a cat sees it" if len(inputs) == 2 else "the dog"
        check_patching(page, model, inputs, other, np.abs(expected[-1]).max())
        page.evaluate("npformer.edit({ values: { [npformer.attribution(2, 5)[1][1]]: [[0, 3]] } })")
        parts = page.evaluate("npformer.attribution(2, 5)")  # with a value that was set, too
        logit = page.evaluate("npformer.values('logits')[2 * npformer.shape('logits')[1] + 5]")
        assert sum(value for *_, value in parts) == pytest.approx(logit, abs=1e-12)
        page.click('#views button:text-is("Predictions")')
        check_decision(page, expected)


def check_decision(page, expected):
    """Compare the sentence that says when a prediction is decided with the logits (L + 1, T, V)."""
    page.click(".lens tbody tr:nth-child(2) button")
    best = np.argmax([logits.reshape(-1, logits.shape[-1])[1] for logits in expected], 1)
    other = np.flatnonzero(best != best[-1])
    decided = other[-1] + 1 if len(other) else 0
    name = f"layer {decided - 1}" if decided else "the embedding"
    found = f"is the most probable token from {name} on"
    if 0 < decided == len(best) - 1:
        found = f"becomes most probable in {name}, the last of {decided} (counted from 0)."
    assert found in page.text_content("#lens-told")
    page.focus(".lens tbody tr:nth-child(2) button")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('tr').rowIndex") == 3
    present = page.get_attribute("#map .present", "data-block")
    page.click("#lens-told button")
    assert page.evaluate("npformer.explorer.view") == "steps"
    assert page.get_attribute("#map .present", "data-block") == present
    told = page.text_content("#row-norms")
    value = re.match(r"After “.+”, this part adds (\S+) to the logit of “.+?”\. The largest share, ", told)[1]
    assert value in page.locator("#lens-parts li > span:last-child").all_text_contents()


OTHER_IDS = "text => npformer.explorer.session.task.otherIds(npformer.explorer.session.ids, text)"


def check_patching(page, model, inputs, text, largest):
    """Compare the effects of all activations of another text, exact and of first order, with the package.

    They are differences of logits, of which `largest` is the largest.
    """
    ids = page.evaluate(OTHER_IDS, text)
    others = [np.array([ids[side]]) for side in ("source", "targetIn") if ids[side]]
    tokens = [list(map(str, each[0])) for each in inputs]
    for what in ACTIVATIONS:
        found = page.evaluate("arguments => npformer.patch(...arguments)", [text, what])
        position, token, versus = (found["compared"][name] for name in ("position", "token", "versus"))
        settings = {"tokens": tokens, "labels": ("", None), "what": what}
        expected = patching_of(model, inputs, others, Output(position, token), versus, **settings)
        scores = [expected.score, expected.other_score]
        assert [found["score"], found["otherScore"]] == pytest.approx(scores, abs=1e-12 * largest)
        sites = iter(found["sites"])
        for effects in expected.effects.values():
            for exact, first_order in zip(effects.exact, effects.first_order, strict=True):
                patches = next(sites)["patches"]
                shown = np.array([[patch["exact"], patch["firstOrder"]] for patch in patches])
                assert np.abs(shown - np.stack([exact, first_order], 1)).max() <= 1e-12 * largest
        assert next(sites, None) is None


def test_a_reader_writes_with_the_model(page):
    state = "(({ tokens, isDone }) => [tokens.length, isDone])"
    page.keyboard.press("Space")
    assert page.evaluate(f"{state}(npformer.writer)")[0] == 1
    bars = page.locator(".next-token")
    assert bars.count() == 8
    word = bars.nth(2).locator("b").text_content()
    bars.nth(2).click()
    assert page.locator(".written .token").last.text_content() == word
    bars.nth(1).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "next-token-1"
    page.click("#write summary")
    words = bars.locator("b").all_text_contents()
    page.fill("#write-topK", "3")
    assert page.locator(".next-token:disabled").count() == 5
    assert bars.locator("b").all_text_contents() == words
    page.locator(".written .token").first.click()
    assert page.evaluate("npformer.writer.tokens") == []
    page.click('#write button:text-is("Write to the end")')
    assert page.evaluate(f"{state}(npformer.writer)")[1]
    tokens = page.evaluate("npformer.writer.tokens")
    page.click('#write button:text-is("Show this text in the model")')
    assert page.evaluate("npformer.explorer.session.ids.targetOut")[: len(tokens) - 1] == tokens[:-1]


def test_the_sentence_flows_through_the_model_and_a_block_opens(page):
    assert page.evaluate("npformer.explorer.view") == "overview"
    # a page that opens plays: without that, two frames are drawn
    wait_for(page, "npformer.overview.isWelcome && npformer.overview.times.length > 5")
    assert page.text_content("#overview .told").startswith("The sentence rises from the bottom")
    page.click('#views button:text-is("The model")')  # any click ends that
    wait_for(page, "npformer.overview.stage === Infinity && npformer.overview.frame === 0")
    for does in ("becomes a vector", "its query is compared", "goes through a small network"):
        page.click('button[aria-label="One block more"]')
        assert does in page.text_content("#overview .told")
    page.focus("#play")
    page.keyboard.press("Enter")
    wait_for(page, "npformer.overview.stage > 0.2 && npformer.overview.stage < 99")
    assert page.evaluate("document.activeElement.textContent") == "Stop"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Play"
    stage = page.evaluate("npformer.overview.stage")
    page.click('button[aria-label="One block more"]')
    assert page.evaluate("npformer.overview.stage") == int(stage) + 1
    page.click('#direction button[data-choice="backward"]')
    page.click('#overview button:text-is("Play")')
    wait_for(page, "npformer.overview.isBackward && npformer.overview.frame > 0")
    page.evaluate("npformer.overview.stage = 99")  # the end
    wait_for(page, "npformer.overview.frame === 0")
    times = sorted(page.evaluate("npformer.overview.times"))
    assert times[len(times) // 2] <= 16  # ms of script for a frame
    page.keyboard.press("f")
    page.focus("#overview-picture")
    page.keyboard.press("ArrowRight")  # to the first token of the source
    told = page.text_content("#overview .told")
    assert re.search(r"“\S+ → \S+” \(\S+, head .\) attend most to “the”", told)
    for key in ("ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert "“dog” attends most to “" in page.text_content("#overview .told")
    page.keyboard.press("Enter")
    wait_for(page, "npformer.explorer.view === 'steps'")
    assert "self-attention" in page.text_content("#crumbs")
    assert "“dog”, dimension " in page.text_content("#arithmetic .number")
    assert page.evaluate("document.activeElement.id") == "steps"
    page.keyboard.press("Escape")
    assert page.is_visible("#overview-picture")
    page.click("#overview-picture", position=dict(zip("xy", page.evaluate(PLACE_OF_WORD), strict=True)))
    assert page.text_content("#overview .told").startswith("“dog” is pinned: ")
    page.click('#views button:text-is("Attention")')
    assert re.match("encoder, layer ., head .: .* from “dog”", page.text_content("#attention-told"))
    assert page.is_visible("#attention-pinned")
    page.click('#views button:text-is("Steps")')
    assert "“dog”, dimension " in page.text_content("#arithmetic .number")
    # a token that is predicted is pinned as the one that is read there, and stays so in a longer sentence
    page.evaluate("npformer.overview.pin(npformer.overview.flow.blocks.at(-1), 2)")
    page.evaluate("npformer.explorer.goTo('decoder.1.cross.attention.scores')")
    head, query = page.evaluate(PLACE)
    assert query == 2
    page.evaluate("npformer.set_sentence('the dog is tired and the cat is tired')")
    assert page.evaluate(PLACE) == [head, query]


def test_without_motion_the_stages_stand_still(chromium, html):
    with open_page(chromium, html, **DESK, reduced_motion="reduce") as page:
        visit(page)
        assert page.evaluate("[npformer.overview.stage, npformer.overview.frame]") == [float("inf"), 0]
        for stage in (1, 2):
            page.click('#overview button:text-is("Play")')
            assert page.evaluate("[npformer.overview.stage, npformer.overview.frame]") == [stage, 0]
        page.click('#views button:text-is("Teach it")')
        assert page.evaluate(SLIDE) == []


# the properties of bars of probabilities that move after a training step
SLIDE = """(() => {
    npformer.step(0.01);
    npformer.step(0.01);
    const bars = [...document.querySelectorAll(".words .share i")],
        moving = bars.flatMap((bar) => bar.getAnimations());
    return bars.length && [...new Set(moving.map(({ transitionProperty }) => transitionProperty))];
})()"""


def test_a_translation_is_taught_and_forgotten(page):
    page.click('#views button:text-is("Teach it")')
    goal = page.input_value("#teach-target")
    before = page.evaluate("npformer.explorer.session.output")
    assert goal != before
    untaught = page.evaluate("npformer.loss()")
    page.fill("#teach-target", "un")
    told = "After 60 steps, the model still writes"
    while told.startswith("After 60 steps, the model still writes"):
        page.click(".teach")
        wait_for(page, "document.getElementById('teach-train').textContent === 'Train'")
        told = page.text_content("#teach-told")
    assert re.fullmatch("Learned after .* steps: the model now writes “un”.", told)
    assert not page.is_visible("#teach-exchanged")  # which says what the model wrote before
    wait_for(page, "npformer.explorer.timer === 0")
    losses = page.evaluate("[npformer.explorer.session.origin.summary.loss, npformer.loss()]")
    assert losses == sorted(losses, reverse=True)
    assert "moved" in page.get_attribute('[data-block="target"]', "class")
    beginning = page.text_content("#training .comparison > table td")
    assert beginning.strip() == f"{losses[0]:.3f}"
    assert page.evaluate(SLIDE) == ["width"]
    page.click("#teach-forget")
    assert page.text_content("#teach-told").startswith("Forgotten: ")
    assert page.input_value("#teach-target") == "un"  # what the reader wrote stays
    assert page.evaluate("npformer.loss()") == untaught
    assert page.evaluate("npformer.explorer.session.texts.target") == before
    assert "moved" not in page.get_attribute('[data-block="target"]', "class")
    assert "target=" not in page.evaluate("location.hash")
    page.fill("#teach-target", before)
    page.fill("#teach-form + p input", "chat")  # in place of the last word
    page.keyboard.press("Tab")
    assert page.input_value("#teach-target").split() == [*before.split()[:-1], "chat"]
    assert "becomes “chat”" in page.text_content("#teach-exchanged")
    page.fill("#teach-target", "le chein")
    page.click(".teach")
    for said in ("#message", "#teach-exchanged"):
        assert "does not know “chein”" in page.text_content(said)
