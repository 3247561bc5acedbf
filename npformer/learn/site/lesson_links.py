"""The addresses of lessons on the site, and where the prose names lessons, chapters and terms."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from npformer.learn.course.glossary import Term
from npformer.learn.course.lesson import Lesson

FILE = r"`\d\d_(?:\d_)?\w+`"  # the name of a lesson's file
NUMBER = r"\d+(?:\.\d+)?"
# "lesson 4.4, `04_4_query_key_and_value`", "lesson 4.4 (`...`)" or "第 4.4 课（`...`）": the file is left out
NAMED = re.compile(rf"([Ll]esson\s+{NUMBER}|第 {NUMBER} 课)(?:,\s+{FILE}|，{FILE}|\s+\({FILE}\)|（{FILE}）)")
SEVERAL = rf"{NUMBER}(?:(?:,\s+|\s+and\s+|\s+or\s+|\s+to\s+|–){NUMBER})*"
NAMES = rf"\b(?P<word>[Ll]esson|[Cc]hapter)s?\s+{SEVERAL}|第 {NUMBER} (?P<sign>课|章)"
KINDS = {"l": "lesson", "课": "lesson", "c": "chapter", "章": "chapter"}
REPOSITORY = "https://github.com/npformer/npformer"  # setup.py has it for the metadata
PUBLISHED = "https://npformer.github.io/npformer"  # where the project's workflow publishes the site
# words that have an everyday meaning, too: they are linked from the lesson that introduces the term on
AMBIGUOUS = {
    "batch", "bias", "cache", "floor", "gradient", "head", "kernel", "key", "leak", "mask", "memory",
    "packing", "query", "saliency", "value", "decoder", "encoder", "checkpoint",
}  # fmt: skip


def page_of(lesson: Lesson) -> str:
    """Return the path of the page of a lesson, such as lessons/05_1.html or lessons/01.html."""
    return f"{document_of(lesson)}.html"


def document_of(lesson: Lesson) -> str:
    """Return the name of the document of a lesson, such as lessons/05_1 or lessons/01."""
    part = "" if lesson.part is None else f"_{lesson.part}"
    return f"lessons/{lesson.chapter:02}{part}"


class Named(NamedTuple):
    """A piece of prose that names something.

    Args:
        start, end: Where the piece begins and ends.
        kind: "lesson", "chapter" or "term".
        name: The number of the lesson or the chapter, or the name of the term.
    """

    start: int
    end: int
    kind: str
    name: str


def named_in(text: str, forms: Mapping[str, str]) -> Iterator[Named]:
    """Yield what a text names, in order.

    Args:
        text: The text, without code and formulas.
        forms: The names of the terms by their forms in lower case, as `forms_of` gives them.
    """
    # the longest form first, so that "attention weight" is not read as "attention"
    sources = [re.escape(form).replace(r"\ ", r"\s+") for form in sorted(forms, key=len, reverse=True)]
    terms = rf"(?<![\w-])(?:{'|'.join(sources)})(?![\w-])" if sources else r"(?!)"
    for found in re.finditer(f"{NAMES}|(?P<term>(?i:{terms}))", text):
        if found["term"]:
            yield Named(*found.span(), "term", forms[" ".join(found[0].lower().split())])
            continue
        kind = KINDS[(found["word"] or found["sign"])[0].lower()]
        numbers = list(re.finditer(NUMBER, found[0]))
        for number in numbers:  # a single one is linked with its word
            start, end = number.span() if len(numbers) > 1 else (0, len(found[0]))
            yield Named(found.start() + start, found.start() + end, kind, number[0])


def forms_of(terms: list[Term], lesson: Lesson) -> dict[str, str]:
    """Return the names of the terms that a lesson may use, by every form of their names in lower case."""
    forms: dict[str, str] = {}
    for term in terms:
        first = min((place.path.name for place in term.lessons), default="")  # files in the course's order
        if term.name in AMBIGUOUS and lesson.path.name < first:
            continue
        # "length normalization, length penalty" and "rotary positions (RoPE)" are two names each
        for name in filter(None, re.split(r", | \(|\)", term.name)):
            plural = (
                f"{name[:-1]}ies" if re.search(r"[^aeiou]y$", name) else f"{name}{'e' * name.endswith('s')}s"
            )
            for form in (name, plural):
                forms.setdefault(form.lower(), term.name)
    return forms
