"""The tokenizer of the page is that of Python: the same tokens, ids, texts and unknown words."""

import random
import unicodedata
from itertools import product

import pytest
from browser import open_page
from engine_page import open_modules
from page_steps import wait_until_ready
from unicode_texts import unicode_texts
from word_translator import ENGLISH, FRENCH, word_translator

from npformer.data.tokens import detokenize, tokenize
from npformer.explorer import explore

pytestmark = pytest.mark.browser

HARNESS = """
import { tokenize, detokenize } from "/state/tokenize.js";
// null for a text with characters that are newer than the browser's tables
window.tokenized = (texts, rules) =>
  texts.map((text) => /\\p{Cn}/u.test(text) ? null : tokenize(text, rules));
window.joined = (lists) => lists.map(detokenize);
"""

# what the rules distinguish: they are joined at random, with and without spaces
PIECES = [
    *("l'", "qu'il", "aujourd'hui", "d’une", "didn't", "'", "’", "ʼ", "-", "‐", "hard-hat", "2.50", "10:30"),
    *("½.5", "①,②", "3,", ".4", "٣.٤", "J'", "ſ'a", "QU'", "presqu'", "l'\u0301a", "aujourd'hui\u0301", "é"),
    *("e\u0301", "\r\n", "\n", "\r", "\x1c", "\x1f", "\x85", "\u2028", " ", "_", "<S>", "ΟΔΟΣ", "İ", "ẞ"),
    *("zoë", "日本語", "नमस्ते", "\u200d", "\U0001d165", "\U000e0101", "👍🏽", "❤\ufe0f", "\u00ad", "\ufeff"),
    *("…", "«", "„", "“", "n°"),
]  # fmt: skip


@pytest.fixture(scope="module")
def page(chromium):
    with open_modules(chromium, HARNESS, "window.joined") as opened:
        yield opened


def texts():
    """Return 2,000 texts and more: random Unicode that Python knows, and pieces for the rules."""
    rng = random.Random(5)
    made = unicode_texts(1300, seed=5)
    while len(made) < 2500:
        made.append("".join(rng.choice([*PIECES, " ", " "]) for _ in range(rng.randint(1, 9))))
    return [text for text in made if all(unicodedata.category(c) != "Cn" for c in text)]


@pytest.mark.parametrize(("lowercase", "elision"), list(product([True, False], repeat=2)))
def test_texts_have_the_same_tokens(page, lowercase, elision):
    rules = {"lowercase": lowercase, "elision": elision}
    given = texts()
    found = page.evaluate("([texts, rules]) => tokenized(texts, rules)", [given, rules])
    pairs = [(text, tokens) for text, tokens in zip(given, found, strict=True) if tokens is not None]
    assert len(pairs) >= 2000
    expected = [tokenize(text, **rules) for text, _ in pairs]
    different = [(text, new, old) for (text, new), old in zip(pairs, expected, strict=True) if new != old]
    assert different == []
    assert page.evaluate("lists => joined(lists)", expected) == [detokenize(tokens) for tokens in expected]


def test_sentences_have_the_same_ids_and_unknown_words(chromium):
    translator = word_translator()
    codecs = {"source": translator.codec.source, "target": translator.codec.target}
    rng = random.Random(6)
    with open_page(chromium, explore(translator, "the dog is tired").html) as page:
        wait_until_ready(page)
        for side, lines in (("source", ENGLISH), ("target", FRENCH)):
            words = [
                *" ".join(lines).split(),
                "DOG",
                "Chien",
                "d'été",
                "zebra",
                "l’animal",
                "x-ray",
                ",",
                "?!",
            ]
            given = [" ".join(rng.choices(words, k=rng.randint(1, 8))) for _ in range(300)]
            found = page.evaluate(
                """([texts, side]) => texts.map((text) => {
                    try { return npformer.explorer.session.task.idsOf(text, side); }
                    catch (error) { return error.suggestions.map(({ word }) => word); }
                })""",
                [given, side],
            )
            codec, known = codecs[side], 0
            for text, ids in zip(given, found, strict=True):
                unknown = codec.vocabulary.unknown(codec.words(text))
                end_id = translator.model.config.end_id
                is_refused = unknown and side == "target"  # a sentence may have unknown words, read as <UNK>
                wanted = list(dict.fromkeys(unknown)) if is_refused else [*codec.encode(text), end_id]
                assert ids == wanted, text
                known += not unknown
            assert 30 < known < 270
