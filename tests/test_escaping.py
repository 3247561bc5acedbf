"""Text from outside: printable, in Markdown and in a shell command."""

import os
import shlex
import shutil
import subprocess
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from npformer.escaping import markdown, markdown_code, markdown_fence, printable, shell_text, shell_word

DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LINES = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
ANY_TEXT = st.text(st.characters(blacklist_categories=())) | st.text("\\`*_[]<>|$#&~ ab\n\x1b" + DIRECTIONS)


def steers(character):
    """Return whether a character may move the cursor, end a line, reorder a line or not be encoded."""
    return unicodedata.category(character) in ("Cc", "Cs") or character in DIRECTIONS + LINES


@given(ANY_TEXT)
def test_nothing_of_a_printable_text_steers_the_terminal(text):
    shown = printable(text)
    assert not any(map(steers, shown))
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown
    ordinary = "".join(filter(str.isprintable, text))
    assert printable(ordinary) == ordinary


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("été Straße — 中文 😀", "été Straße — 中文 😀"),
        ("5\u00a0% et\u202f!", "5\u00a0% et\u202f!"),  # the spaces of French typography
        ("می\u200cخواهم", "می\u200cخواهم"),  # joiners belong to the spelling of some languages
        ("a\x1b[31mb\x9bm", r"a\x1b[31mb\x9bm"),
        ("one\ntwo\rthree\tfour", r"one\ntwo\rthree\tfour"),
        ("abc\u202edcba", r"abc\u202edcba"),
        (os.fsdecode(b"caf\xe9.txt"), r"caf\udce9.txt"),
    ],
)
def test_printable_shows_escapes_as_python_does(text, shown):
    assert printable(text) == shown
    assert printable(text, keep="\n\t") == shown.replace(r"\n", "\n").replace(r"\t", "\t")


def words_of(tokens):
    """Return the text that a page of Markdown shows, without its markup."""
    return "".join(words_of(token.children) if token.children else token.content for token in tokens)


@given(st.text("\\`*_[]()<>|$#&~!ab12;: \x1b", min_size=1))
@example("~~a~~ __b__ _c_ **d** [e](f) ![g](h) `i` <b> <http://j> &amp; &#65; \\* k|l")
def test_markdown_shows_the_text_itself(text):
    text = "a " + text.strip() + " b"  # a paragraph, not a heading or a list
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    assert words_of(page.parse(markdown(text))) == printable(text)
    table = page.parse(f"| head | more |\n|---|---|\n| {markdown(text)} | {markdown('x|y')} |\n")
    cells = [token.children for token in table if token.type == "inline"]
    assert [words_of(cell) for cell in cells] == ["head", "more", printable(text), "x|y"]
    kinds = {token.type for cell in cells for token in cell}
    assert kinds <= {"text", "text_special"}, kinds  # no emphasis, link, code or HTML


def test_a_word_with_underscores_stays_readable():
    assert markdown("d_model of test_2016.de") == "d_model of test_2016.de"


@pytest.mark.parametrize("text", ["npformer train", "echo `date`", "a ``b`` c", "`", "a | b", "x\n```\ny"])
def test_code_stays_code(text):
    page = MarkdownIt("commonmark").enable("table")
    table = page.parse(f"| head |\n|---|\n| {markdown_code(text)} |\n")
    cell = [token for token in table if token.type == "inline"][-1]
    assert [(token.type, token.content) for token in cell.children] == [("code_inline", printable(text))]
    fence = markdown_fence(text)
    block = page.parse(f"{fence}\n{text}\n{fence}\n")
    assert [(token.type, token.content) for token in block] == [("fence", f"{text}\n")]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_shell_reads_the_word_as_the_path():
    names = [
        "a",
        "with space",
        "$x$",
        "it's",
        "[a]",
        "-dash",
        "a\nb",
        "\x1b[31m\\'",
        os.fsdecode(b"\xe9"),
        "~",
    ]
    words = [shell_word(name) for name in names]
    assert all(printable(word) == word for word in words)
    done = subprocess.run(
        ["bash", "-c", "printf '%s\\0' " + " ".join(words)], capture_output=True, check=True
    )
    read = [os.fsdecode(name) for name in done.stdout.split(b"\0")[:-1]]
    assert read == ["./-dash" if name == "-dash" else name for name in names]
    assert shell_word("runs/en-de") == "runs/en-de"
    assert shlex.split(shell_word("it's a $x$")) == ["it's a $x$"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_sentences_reach_a_program_of_the_shell_as_they_are():
    """Most are in double quotes, which stand well around an apostrophe."""
    texts = ["the dog", "it's a dog", 'a "quote"', "cost $5", "`ls`", "back\\slash", "oh!", "a\nb", ""]
    words = [shell_text(text) for text in texts]
    line = "printf '%s\\0' " + " ".join(words)
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == texts
    assert words[:2] == ['"the dog"', '"it\'s a dog"']
    assert all(printable(word) == word for word in words)
