"""What a page cannot do is said in one sentence: bad input, and a browser that lacks something."""

import contextlib

import pytest
from browser import open_page
from page_steps import wait_until_ready
from readers import DESK
from tiny_runs import bert_checkpoint
from word_translator import word_translator

from npformer.cli.main import main
from npformer.explorer.steps import recording
from npformer.storage.checkpoint import save_checkpoint

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(chromium, html):
    with open_page(chromium, html, **DESK) as opened:
        wait_until_ready(opened)
        opened.click("#open-form")
        yield opened


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("the dog", "le chein", "The model does not know “chein”: choose words of its vocabulary."),
        ("", "", "The sentence is empty: write at least one word."),
        (" \u200b\ufeff\t", "", "The sentence is empty: write at least one word."),
        ("dog " * 48, "", "The sentence has 48 words, and the page has room for 47: shorten it."),
        ("the dog", "chien " * 99, "The translation has 99 words, and the page has room for 47: shorten it."),
    ],
)
def test_a_typed_sentence(source, target, message, page):
    before = page.evaluate("[npformer.loss(), location.hash]")
    page.fill("#source-input", source)
    page.fill("#target-input", target)
    page.click("#sentence-form .main")
    said = page.text_content("#message").split(" Did you mean")[0]
    assert said == message
    assert page.evaluate("[npformer.loss(), location.hash]") == before


def test_suggestions_and_a_new_sentence_is_translated_anew(page):
    """Exchanged letters and punctuation are seen, and only a translation that was typed is kept."""
    page.fill("#target-input", "")
    page.fill("#source-input", "the dgo is tired.")
    page.click("#sentence-form .main")
    offers = page.locator("#message button")
    assert offers.first.text_content() == "dog"
    assert offers.last.text_content() == "leave out “.”"
    offers.first.click()
    page.click("#sentence-form .main")
    page.click("#message button")
    page.click("#sentence-form .main")
    texts = "(({ texts, output, isOwnOutput }) => [texts.source, texts.target === output, isOwnOutput])"
    assert page.evaluate(f"{texts}(npformer.explorer.session)") == ["the dog is tired", True, True]
    page.fill("#target-input", "un chat")
    page.click("#sentence-form .main")
    assert page.evaluate("npformer.explorer.session.texts.target") == "un chat"
    page.fill("#source-input", "a cat sees it")
    page.click("#sentence-form .main")
    assert page.evaluate(f"{texts}(npformer.explorer.session)") == ["a cat sees it", True, True]


@pytest.mark.parametrize(
    ("typed", "offer", "expected"),
    [
        ("the dog is; tired;", "leave out “;”", "the dog is tired"),
        ("the ti is tired", "Replace ti by it", "the it is tired"),
        ("it’s tired", "Replace it's by it", "it tired"),
        ("well-tired dog", "Replace well-tired by tired", "tired dog"),
        ("the dog * is [tired", "leave out “*”", "the dog  is [tired"),
    ],
)
def test_a_suggestion_replaces_a_whole_word_alone(typed, offer, expected, page):
    page.fill("#source-input", typed)
    page.click("#sentence-form .main")
    page.get_by_role("button", name=offer, exact=True).click()
    assert page.input_value("#source-input") == expected


def test_the_form_has_the_present_texts_and_reads_the_sign_of_an_unknown_word(page):
    page.fill("#source-input", "the xyzzy is tired")
    page.click("#own")
    texts = "npformer.explorer.session.texts"
    page.evaluate("npformer.explorer.session.setToken('source', 3, 5); npformer.explorer.recompute()")
    assert page.input_value("#source-input") == page.evaluate(f"{texts}.source")
    assert "the <UNK> is" in page.input_value("#source-input")
    ids = page.evaluate("npformer.explorer.session.ids.source")
    page.click("#sentence-form .main")
    assert page.evaluate("npformer.explorer.session.ids.source") == ids


def test_an_unknown_word_of_a_sentence_is_read_as_the_package_reads_it(page):
    page.fill("#source-input", "the dgo is tierd")
    page.click("#own")
    said = "The model does not know “dgo”, “tierd” and reads <UNK> instead."
    assert page.text_content("#message").split(" Did you mean")[0] == said
    session = "npformer.explorer.session"
    ids, tokens = page.evaluate(
        f"[{session}.ids.source, {session}.ids.source.map(id => {session}.head.source_words[id])]"
    )
    assert tokens == ["the", "<UNK>", "is", "<UNK>", "</S>"]
    assert ids == word_translator().source_ids("the dgo is tierd")


def test_the_longest_sentence_has_room(page):
    page.fill("#source-input", "dog " * 47)
    page.fill("#target-input", "chien " * 47)
    page.click("#sentence-form .main")
    assert page.text_content("#message") == ""
    assert page.evaluate("npformer.shape('logits')[0]") == 48


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"path": "encoder.9.y"}, "There is no array named “encoder.9.y”: choose one of the list."),
        ({"place": "1, 2"}, "The array has the shape 2 × 5 × 5: write 3 indices, counted from 0."),
        ({"place": "0, 0, 5"}, "The array has the shape 2 × 5 × 5: write 3 indices, counted from 0."),
        ({"value": "much"}, "Write a number as the value, such as 0.5."),
    ],
)
def test_a_value_that_cannot_be_set(fields, message, page):
    page.click('#views button:text-is("What if")')
    good = {"path": "encoder.0.self_attention.attention.scores", "place": "0, 0, 0", "value": "1"}
    page.evaluate("npformer.set_sentence('the dog is tired')")
    for name, text in (good | fields).items():
        page.fill(f"#value-of-{name}", text)
    page.click("#changes form .main")
    assert page.text_content("#changes .told") == message
    assert page.evaluate("npformer.explorer.session.countEdits()") == 0


def test_a_masked_score_has_no_slope(page):
    page.click('#views button:text-is("Check a gradient")')
    page.fill("#slope-of-path", "decoder.0.self_attention.attention.masked")
    page.fill("#slope-of-place", "0, 0, 1")
    page.click("#slope form .main")
    said = "This entry is −∞: nudging it changes nothing. Choose another."
    assert page.text_content("#slope .told") == said


def test_a_token_that_is_not_in_the_vocabulary(page):
    page.click('#views button:text-is("What if")')
    page.fill("#what-tokens p:first-child input", "dgo")
    page.keyboard.press("Tab")
    assert page.text_content("#message") == "The model does not know “dgo”: try dog, too."


# Browsers that lack something


@contextlib.contextmanager
def other_browser(chromium, html, script="", **settings):
    """Open a page in a browser in which a script ran before, and yield it. It may write errors."""
    context = chromium.new_context(**settings)
    try:
        page = context.new_page()
        if script:
            page.add_init_script(script)
        page.route("**/*", lambda route: route.fulfill(body=html, content_type="text/html"))
        page.goto("http://page.test/")
        yield page
    finally:
        context.close()


def visible(page):
    """Return the sentences that the page shows about what it lacks."""
    found = [page.locator(selector) for selector in ("noscript p, p.needs", "#message")]
    return [each.text_content() for list_ in found for each in list_.all() if each.is_visible()]


def wait_for_a_sentence(page):
    """Wait until the page says that it lacks something."""
    for _ in range(1000):
        if visible(page):
            return
        page.wait_for_timeout(20)


def test_without_scripts(chromium, html):
    with other_browser(chromium, html, java_script_enabled=False) as page:
        page.wait_for_timeout(3200)
        assert visible(page) == [
            "This page computes with JavaScript, which is switched off: switch it on for this file."
        ]


def test_without_modules(chromium, html):
    """A module that a browser does not read, here since its hash is another one, leaves the sentence."""
    old = html.replace('<script type="module">', '<script type="module"> ')
    assert old != html
    with other_browser(chromium, old) as page:
        assert visible(page) == []
        wait_for_a_sentence(page)
        assert visible(page) == ["This page needs a browser of 2023 or later: open the file in a newer one."]


@pytest.mark.parametrize(
    "script", ["delete Array.prototype.findIndex", "window.URLSearchParams = undefined;"]
)
def test_without_a_function_that_the_page_calls(script, chromium, html):
    with other_browser(chromium, html, script) as page:
        wait_for_a_sentence(page)
        (sentence,) = visible(page)
        assert sentence.startswith("The page cannot be shown in this browser: ")
        assert sentence.endswith(".")


def test_with_all_that_it_needs_the_page_asks_for_nothing(chromium, html):
    with other_browser(chromium, html) as page:
        wait_until_ready(page)
        page.wait_for_timeout(3200)
        assert visible(page) == []


# Models and texts that are too large for a page


def test_a_text_whose_arrays_have_no_room_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recording, "LARGEST_PAGE", 1000)
    save_checkpoint(bert_checkpoint(), "run.safetensors")
    assert main(["explore", "the cat sees a dog", "--model", "run.safetensors"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "numbers, and a page has room for 1,000: give a shorter text" in said
    assert not (tmp_path / "explorer.html").exists()
