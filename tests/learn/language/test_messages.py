"""Catalogs: complete, of today, with the marks of the English texts, the terms, and Chinese punctuation."""

import re
from collections import Counter

import pytest
from markdown_it import MarkdownIt
from polib import pofile

from npformer.errors import UserError
from npformer.language import LANGUAGES, LOCALE, path_of
from npformer.learn.course.glossary import all_terms
from npformer.learn.course.lesson import all_lessons
from npformer.learn.course.prose import formulas, replace_formulas
from npformer.learn.language.messages import WORDLESS, messages_of, replace_messages
from npformer.learn.language.sources import catalogs_of, messages_for
from npformer.learn.language.update import readme_of, translated_readme, update, updated

CATALOGS = [(language, name) for language in set(LANGUAGES.values()) for name in catalogs_of(language)]
CHINESE = "[\u4e00-\u9fff]"
# a comma and the like beside a Chinese character, and a Chinese character beside a Latin letter or digit
HALF_WIDTH = re.compile(f"{CHINESE}[,;:?!]|{CHINESE}\\.(?!\\w)|[,;:?!]{CHINESE}|{CHINESE}[()]|[()]{CHINESE}")
PROGRAM = (
    "interface",
    "grader",
    "bugs",
    "explorer",
    "exercises/",
)  # plain text, with names of code
NAMES = (*PROGRAM, "docs/teaching")  # and those with names of code that are not marked as code
NO_SPACE = re.compile(f"{CHINESE}[A-Za-z0-9]|[A-Za-z0-9%]{CHINESE}")


def entries_of(language, name):
    return list(pofile(str(path_of(language, name))))


def marks_of(message):
    """Return the code, formulas, addresses, names of values and shapes of a message."""
    code = re.findall(r"`[^`]+`", message)
    addresses = re.findall(r"\]\(([^)]*)\)", message)
    values = re.findall(r"\{\w+[^{} ]*\}|NUMBER", WORDLESS.sub("", message))
    shapes = re.findall(r"\(\.\.\.[^)]*\)", message)
    return Counter([*code, *addresses, *formulas(message), *values, *shapes])


def terms_of(language):
    """Return the terms of a language, the longest first."""
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \|$", (LOCALE / language / "TERMS.md").read_text("utf-8"), re.MULTILINE
    )
    return sorted(rows[1:], key=lambda row: -len(row[0]))


@pytest.mark.parametrize(("language", "name"), CATALOGS)
def test_every_message_of_today_is_translated(language, name):
    """If this fails, run python -m npformer.learn.language.update LANGUAGE, and translate what is new."""
    entries = entries_of(language, name)
    assert [entry.msgid for entry in entries] == messages_for(name)
    assert [entry.msgid for entry in entries if not entry.translated()] == []


@pytest.mark.parametrize(("language", "name"), CATALOGS)
def test_a_translation_keeps_code_formulas_links_and_emphasis(language, name):
    for entry in entries_of(language, name):
        assert marks_of(entry.msgstr) == marks_of(entry.msgid), entry.msgid
        if not name.startswith(PROGRAM):
            shown = replace_formulas(entry.msgstr, lambda latex, display: "")
            html = MarkdownIt("commonmark").renderInline(shown)
            assert "*" not in re.sub(r"<code>.*?</code>", "", html), entry.msgstr


@pytest.mark.parametrize("name", catalogs_of("zh_CN"))
def test_chinese_has_its_terms_its_punctuation_and_spaces_beside_latin_letters(name):
    for entry in entries_of("zh_CN", name):
        titles = [
            title
            for title in re.findall(r"(?<!\*)\*(?!\*)[^*]+\*(?!\*)", entry.msgid)
            if title in entry.msgstr
        ]
        left, translation = WORDLESS.sub(" ", entry.msgid), entry.msgstr
        for title in titles:  # of a paper, or an English word
            left, translation = left.replace(title, " "), translation.replace(title, "")
        for word in re.findall(r"[A-Za-z-]+", translation) if name.startswith(NAMES) else ():
            left = re.sub(rf"\b{word}\b", " ", left, count=1)  # a name of the code
        for english, chinese in terms_of("zh_CN"):
            stem = english.removesuffix("y") + "(?:y|ies)" if english.endswith("y") else f"{english}(?:s|es)?"
            left, count = re.subn(rf"\b{stem}\b", " ", left, flags=re.IGNORECASE)
            assert not count or chinese in translation, (english, entry.msgid, entry.msgstr)
        shown = replace_formulas(WORDLESS.sub("", translation), lambda latex, display: "").replace("*", "")
        assert not HALF_WIDTH.search(shown), (HALF_WIDTH.search(shown), entry.msgstr)
        assert not NO_SPACE.search(shown), (NO_SPACE.search(shown), entry.msgstr)


def test_the_glossary_has_the_same_terms():
    glossary = {term.name: term.chinese for term in all_terms() if term.chinese}
    both = {english: chinese for english, chinese in terms_of("zh_CN") if english in glossary}
    assert len(both) > 20
    assert both == {english: glossary[english] for english in both}


def test_the_readme_in_chinese_is_up_to_date():
    assert readme_of("zh_CN").read_text("utf-8") == translated_readme("zh_CN")


def test_messages_of_every_lesson_can_be_replaced():
    for cell in (cell for lesson in all_lessons() for cell in lesson.cells if cell.kind == "prose"):
        assert replace_messages(cell.text, str) == cell.text
        marked = replace_messages(cell.text, lambda message: f"{message} ♪")
        assert messages_of(marked) == [f"{message} ♪" for message in messages_of(cell.text)]


def test_code_and_formulas_on_lines_of_their_own_stay():
    text = """# A title

- an item in
  two lines
    $$a = b$$
  and more
> a quotation

| head | item of `a` |
|---|---|
| `a` | `code` |

```python
a sentence in code
```
<details><summary>Answer</summary>

Yes, it is.
</details>
"""
    expected = text.replace("in\n  two", "in two").replace("item of `a`", "ITEM OF `A`")
    for message in (
        "A title",
        "an item in two lines",
        "and more",
        "a quotation",
        "head",
        "Answer",
        "Yes, it is.",
    ):
        expected = expected.replace(message, message.upper())
    assert replace_messages(text, str.upper) == expected


def test_a_changed_text_keeps_the_earlier_translation_as_a_stale_one():
    first, *_ = updated([], ["The loss falls."])
    first.msgstr = "损失下降。"
    same, changed, new = updated([first], ["The loss falls.", "The loss falls fast.", "Another."])
    assert same is first
    [changed] = updated([first], ["The loss falls fast."])
    assert (changed.msgstr, changed.fuzzy, changed.previous_msgid) == ("损失下降。", True, "The loss falls.")
    assert not new.msgstr


@pytest.mark.parametrize("name", ["lessons/5.1", "exercises/99", "docs/none"])
def test_a_name_without_a_text_begins_no_catalog(name):
    with pytest.raises(UserError, match=f"there is no text {name}"):
        update("zh_CN", name)
    assert not path_of("zh_CN", name).exists()
