"""The addresses of lessons on the site, and the links where their prose names lessons, chapters and terms."""

import re
from collections.abc import Callable, Sequence
from functools import cache

from npformer.learn.course.glossary import Term, all_terms
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.course.prose import FORMULA

FILE = r"`\d\d_(?:\d_)?\w+`"  # the name of a lesson's file
NUMBER = r"\d+(?:\.\d+)?"
# "lesson 4.4, `04_4_query_key_and_value`", "lesson 4.4 (`...`)" or "第 4.4 课（`...`）": the file is left out
NAMED = re.compile(rf"([Ll]esson\s+{NUMBER}|第 {NUMBER} 课)(?:,\s+{FILE}|，{FILE}|\s+\({FILE}\)|（{FILE}）)")
# in "lessons 4.1, 4.2 and 5.1" each number is a link, and "chapter 4" and "第 4 章" are links as a whole
SEVERAL = rf"{NUMBER}(?:(?:,\s+|\s+and\s+|\s+or\s+|\s+to\s+|–){NUMBER})*"
PLACES = rf"\b(?:[Ll]esson|[Cc]hapter)s?\s+{SEVERAL}|第\ {NUMBER}\ [课章]"
PLACE = re.compile(rf"(?:(?:[Ll]esson|[Cc]hapter)\s+|第 )?({NUMBER})(?: [课章])?")
# what has no links: code, formulas, headings, titles such as *Attention Is All You Need*, and what is a link
OUTSIDE = rf"{FORMULA.pattern} | ^\#[^\n]*$ | \*[^\Wa-z][^*]*\* | !?\[[^\]]*\]\([^)]*\)"
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


def linker(lesson: Lesson) -> Callable[[str], str]:
    """Return a function that adds links to the prose of a lesson.

    They lead to the other lessons and the chapters that it names, and from the first use of each term to the
    glossary.
    """
    used: set[str] = set()
    forms = forms_of(terms_of_course(), lesson)
    # the longest form first, so that "attention weight" is not read as "attention"
    sources = [re.escape(form).replace(r"\ ", r"\s+") for form in sorted(forms, key=len, reverse=True)]
    terms = rf"(?<![\w-])(?P<term>(?i:{'|'.join(sources)}))(?![\w-])"
    documents = {str(each.chapter): f"lessons/chapter_{each.chapter:02}" for each in all_lessons()}
    documents |= {each.number: document_of(each) for each in all_lessons()}
    documents.pop(lesson.number, None)

    def to_place(found: re.Match[str]) -> str:
        document = documents.get(found[1])
        return f"[{found[0]}](/{document}.md)" if document else found[0]

    def link(found: re.Match[str]) -> str:
        if found["outside"]:
            return found[0]
        if not found["term"]:
            return PLACE.sub(to_place, found[0])
        name = forms[" ".join(found[0].lower().split())]
        if name in used:
            return found[0]
        used.add(name)
        return f"{{term}}`{found[0]} <{name}>`"

    named = re.compile(rf"(?P<outside>{OUTSIDE})|{PLACES}|{terms}", FORMULA.flags)
    return lambda prose: named.sub(link, prose)


@cache
def terms_of_course() -> list[Term]:
    """Return all terms, which takes half a second."""
    return all_terms()


def forms_of(terms: Sequence[Term], lesson: Lesson) -> dict[str, str]:
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
