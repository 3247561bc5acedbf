"""Convert text to the form of tokenised corpora: lower case, a space between tokens, entities for some marks.

The rules are taken from Moses' scripts (lowercase, normalize-punctuation, tokenizer). Rules that everyday
sentences do not need are left out. Text that already has the form does not change.

Source: Koehn et al. 2007, Moses. Of its abbreviations, only those in lower case are kept.
"""

import re
import unicodedata
from string import ascii_lowercase

from npformer.data.tokens import detokenize, one_spelling

_ENTITIES = {
    "&": "&amp;",
    "|": "&#124;",
    "<": "&lt;",
    ">": "&gt;",
    "'": "&apos;",
    '"': "&quot;",
    "[": "&#91;",
    "]": "&#93;",
}
_ESCAPE = str.maketrans(_ENTITIES)
_MEANING = {entity: mark for mark, entity in _ENTITIES.items()}
_ENTITY = re.compile("|".join(_MEANING))

# marks of the same meaning, each replaced by one; one_spelling replaces typographic apostrophes
_ASCII_MARKS = str.maketrans(
    dict.fromkeys("„“”«»‚", '"') | dict.fromkeys("´`‘", "'") | {"–": "-", "—": " - ", "\ue000": None}
)

# An apostrophe at the edge of a token, as in "&apos;s" and "l&apos;", shows that the token has the right form
# already. While the rules are applied, it is replaced by _EDGE, a character that occurs in no text, so that
# no rule changes it.
_AT_EDGE = re.compile(r"(?<!\S)&apos;|&apos;(?!\S)")
_EDGE = "\ue000"

_LETTER = r"[^\W\d_]"
_BETWEEN_LETTERS = rf"(?<={_LETTER})'(?={_LETTER})"

# pattern -> replacement, in this order; the first two are for quotations that end with a comma or a full stop
_ENGLISH_QUOTES = ((r'"([,.]+)', r'\1"'),)
_OTHER_QUOTES = ((r',"', '",'), (r'(\.+)"', r'"\1'))
_MARKS = (
    ("''", '"'),
    (rf"([^\w\s.',\-{_EDGE}]|_)", r" \1 "),  # a mark is a token of its own
    (r"(\.{2,})", r" \1 "),
    (r"(?<!\d),|,(?!\d)", " , "),  # but 1,000
)
_APOSTROPHES = {
    "en": ((rf"{_BETWEEN_LETTERS}|(?<=\d)'(?=s)", f" {_EDGE}"), ("'", " ' ")),  # man 's
    "fr": ((_BETWEEN_LETTERS, f"{_EDGE} "), ("'", " ' ")),  # l' homme
}
_ALONE = (("'", " ' "),)

# a full stop belongs to these words in any context; in German it also makes ordinals, as in "2."
_ABBREVIATIONS = {
    "en": {"e.g", "i.e", "rev", "v", "vs"},
    "de": {*ascii_lowercase, *map(str, range(100)), "bzw", "ca", "etc", "evtl", "inkl", "usw", "vgl"},
    "fr": {*ascii_lowercase[1:], "art", "etc", "sec", "vol"},
}


def tokenised(text: str, language: str = "en") -> str:
    """Return the text in the form of a tokenised corpus of the language, "en", "de" or "fr".

    "The dog's asleep." becomes "the dog &apos;s asleep .". Tokenised text does not change.
    """
    text = one_spelling(text).translate(_ASCII_MARKS)
    text = unicodedata.normalize("NFKC", text).lower()
    text = _ENTITY.sub(lambda match: _MEANING[match[0]], _AT_EDGE.sub(_EDGE, text))
    quotes = _ENGLISH_QUOTES if language == "en" else _OTHER_QUOTES
    for pattern, replacement in (*quotes, *_MARKS, *_APOSTROPHES.get(language, _ALONE)):
        text = re.sub(pattern, replacement, text)
    words = text.split()
    split = [
        part
        for word, following in zip(words, [*words[1:], ""], strict=False)
        for part in _split_full_stop(word, following, _ABBREVIATIONS.get(language, set()))
    ]
    return " ".join(split).translate(_ESCAPE).replace(_EDGE, "&apos;")


def _split_full_stop(word: str, following: str, abbreviations: set[str]) -> list[str]:
    """Separate a word from a full stop that does not belong to it, unlike those of "u.s." and "st. louis"."""
    stem = word.removesuffix(".")
    if stem == word or not stem.strip("."):
        return [word]
    dotted = "." in stem and any(map(str.isalpha, stem))
    if dotted or stem in abbreviations or following[:1].islower():
        return [word]
    return [stem, "."]


def moses_detokenize(text: str) -> str:
    """Return tokenised text as a person writes it, but in lower case and without entities."""
    words: list[str] = []
    for word in _ENTITY.sub(lambda match: _MEANING[match[0]], text).split():
        if word.startswith("'") and len(word) > 1 and words:
            words[-1] += word  # man 's
        else:
            words.append(word)
    return detokenize(words)
