"""The words of the page stand in one catalogue by their English texts, so that a page can be translated."""

import re

import pytest
from browser import open_page
from page_steps import wait_until_ready
from readers import DESK
from word_translator import word_translator

from npformer.explorer.model_data import live_data
from npformer.explorer.page import make_page, messages
from npformer.language import speaking

# the texts on the page outside of code and of what a reader has written, with the names of the elements
TEXTS = """() => {
    const found = [];
    const code = "script, noscript, #code, #array-name, pre, datalist, #block-steps, option, #lesson, " +
        "#source-text, #target-text, #map text, .written, .next-token, #overview .told";
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (nodes.nextNode())
        if (!nodes.currentNode.parentElement.closest(code)) found.push(nodes.currentNode.data);
    for (const e of document.querySelectorAll("[aria-label], [title]"))
        if (!e.closest(code)) found.push(e.getAttribute("aria-label") ?? "", e.title ?? "");
    return found;
}"""
NAMES = {"English", "SVG", "PNG", "relu", "gelu", "gelu_tanh", "swish", "none"}


def untranslated(text):
    """Return the words of a text that stand outside of all brackets, which each translation has."""
    depth, rest = 0, []
    for c in text:
        depth += {"⟦": 1}.get(c, 0)
        rest.append(" " if depth else c)
        depth -= {"⟧": 1}.get(c, 0)
    return re.findall(r"[^\W\d][\w.]{2,}", "".join(rest))


@pytest.mark.browser
def test_every_word_of_every_view_is_translated(chromium):
    """With a catalogue that puts all texts in brackets, only tokens and names stand outside of them."""
    data = live_data(word_translator(), "the dog is tired")
    with speaking("zh_CN"):
        page_data = make_page(*data, {text: f"⟦{text}⟧" for text in messages()})
    assert '<noscript><p class="needs">这个页面用 JavaScript 计算' in page_data.html
    tokens = {*page_data.head["source_words"], *page_data.head["target_words"]}
    tokens |= {word for token in tokens for word in untranslated(token)}
    with open_page(chromium, page_data.html, **DESK) as page:
        wait_until_ready(page)
        assert page.text_content("#open-form") == "⟦Change the sentence⟧"
        assert page.title() == "the dog is tired · ⟦npformer explorer⟧"
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        known = (
            tokens
            | NAMES
            | set(page.evaluate("npformer.paths().flatMap((path) => [path, ...path.split('.')])"))
        )
        for number in range(1, page.locator("#views button").count() + 1):
            page.locator(f"#views button:nth-child({number})").dispatch_event("click")  # below what is open
            words = {word for text in page.evaluate(TEXTS) for word in untranslated(text)}
            assert words <= known, sorted(words - known)


@pytest.mark.browser
def test_a_link_shows_the_same_view_in_the_other_language(chromium):
    page_data = make_page(*live_data(word_translator(), "the dog is tired"), {"Attention": "注意力 {braces}"})
    with open_page(chromium, page_data.html, **DESK) as page:
        wait_until_ready(page)
        page.click("#views button:nth-child(3)")
        for language, offered, tab in (("en", "中文", "Attention"), ("zh-CN", "English", "注意力 {braces}")):
            assert page.get_attribute("html", "lang") == language
            assert page.text_content("#views [aria-pressed=true]") == tab
            assert page.text_content("#language") == offered
            page.click("#language")
            wait_until_ready(page)
        assert page.text_content("#views [aria-pressed=true]") == "Attention"


def test_a_call_without_a_text_is_found(tmp_path):
    (tmp_path / "page.html").write_text('<p title="a title">Some <b>words</b>.</p>', encoding="utf-8")
    (tmp_path / "main.js").write_text('a(t("one" + " text"), t("{n} texts", { n }));\n', encoding="utf-8")
    assert messages(tmp_path) == ["a title", "Some", "words", "one text", "{n} texts"]
    (tmp_path / "other.js").write_text("a(t(name));\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other\.js has a call of t without a text"):
        messages(tmp_path)
