"""Tokenizing: the rules that split a text into words and punctuation marks, and join them again."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import PurePath
from typing import NamedTuple


class Language(NamedTuple):
    """A language for the tokenizer: its name, and True if words elide as in l'animal."""

    name: str
    elision: bool = False


LANGUAGES = {
    "en": Language("en"),
    "fr": Language("fr", elision=True),
    "de": Language("de"),
    "plain": Language("plain"),
}


def language_of(path_or_name: str | PurePath) -> Language:
    """Return the language of a file or a name by its suffix: "train.de.gz" and "de" are German.

    If several parts of the file name are known languages, the last one counts. If none is, the language is
    "plain".
    """
    for part in reversed(PurePath(path_or_name).name.lower().split(".")):
        if part in LANGUAGES:
            return LANGUAGES[part]
    return LANGUAGES["plain"]


def tokenize(text: str, *, lowercase: bool = True, elision: bool = False) -> list[str]:
    """Return the words and punctuation marks of a text, in order.

    A word is a run of letters and digits. It may hold a hyphen or an apostrophe between two letters
    (hard-hat, didn't), and a number a point, comma or colon between two digits (2.50, 10:30). Every other
    visible character is a token of its own. "<" is one of them, so no text can contain a special token "<S>".

    elision=True (French) splits a word after its apostrophe: l'animal -> l' animal; aujourd'hui stays whole.
    In a script without spaces, such as Chinese, each run of characters is one word.

    Args:
        text: The text.
        lowercase: Convert the text to lower case first.
        elision: Split words after an apostrophe, as French does.
    """
    if lowercase:
        text = text.lower()
    if not text.isascii():
        # after lower(), which may leave a letter and its accent apart
        text = unicodedata.normalize("NFC", one_spelling(text))
    return _token_pattern(elision).findall(text)


def one_spelling(text: str) -> str:
    """Replace each group of characters that look alike by one character, and remove invisible characters."""
    return text.translate(_ONE_SPELLING)


def detokenize(words: Sequence[str]) -> str:
    """Join words as people write them: no space after l' or an opening bracket, none before a full stop.

    Quotation marks open and close in turn. tokenize(detokenize(w)) == w for every w that tokenize returns,
    unless a token is a lone combining mark.
    """
    pieces: list[str] = []
    space = False  # whether a space precedes the next word
    quoted = False  # whether the next word is inside quotation marks
    for word in words:
        opens = word in _OPENING or (word in _QUOTES and not quoted)
        closes = word in _CLOSING or (word in _QUOTES and quoted)
        quoted ^= word in _QUOTES
        if space and not closes:
            pieces.append(" ")
        pieces.append(word)
        elided = word.endswith("'") and word != "'"
        space = not (opens or elided)
    return "".join(pieces)


_CLOSING = frozenset(".,;:!?)]}…%。，、；：！？）")
_OPENING = frozenset("([{（¿¡")
# German opens with „ and closes with “, English opens with “: only the order shows which mark opens
_QUOTES = frozenset('"„“”')

# characters that look alike or are invisible, and their replacements
_ONE_SPELLING = str.maketrans(
    {
        "\u2019": "'",  # right single quotation mark
        "\u02bc": "'",  # modifier letter apostrophe
        "\u2010": "-",  # hyphen
        "\u2011": "-",  # non-breaking hyphen
        "\u200b": " ",  # zero-width space
        "\u00ad": None,  # soft hyphen
        "\ufeff": None,  # byte-order mark
    }
)


@cache
def _token_pattern(elision: bool) -> re.Pattern[str]:
    """Return the regular expression that matches the tokens."""
    marks = _combining_marks()
    # Python's \w matches letters and digits, but neither the vowel signs of Hindi nor separate accents, which
    # are marks and belong to the character before them. No text can be divided in two ways here, so failed
    # matches take linear time. Possessive quantifiers would say this too, but before Python 3.11.5 nested
    # ones match wrongly.
    run = rf"[^\W_]+(?:[{marks}]+[^\W_]+)*[{marks}]*"
    number = r"(?<=\d)[.,:](?=\d)"
    other = rf"\S[{marks}]*"
    joint = "-" if elision else "['-]"
    word = rf"{run}(?:(?:{joint}|{number}){run})*"
    if not elision:
        return re.compile(rf"{word}|{other}")
    whole = rf"aujourd'hui(?![^\W_{marks}])"
    # l', qu' and jusqu' keep their apostrophe even before a space, as in "l' eau" or "qu' \"il\"". Any other
    # word keeps it only before a letter: in 'mot' the second apostrophe is a closing quote.
    elided = rf"(?:[cdjlmnst]|[^\W_]*qu)'|{word}'(?=[^\W_])"
    return re.compile(rf"{whole}|{elided}|{word}|{other}", re.IGNORECASE)


def _combining_marks() -> str:
    """Return the characters that attach to the one before, and the two joiners in Persian and Indic words."""
    first, last = 0x0300, 0xFFFF
    every = map(chr, range(first, last + 1))
    return "\u200c\u200d" + "".join(c for c in every if unicodedata.category(c) in ("Mn", "Mc", "Me"))
