"""The addresses of lessons and of what they name: other lessons, chapters, terms, views of the explorer."""

import re
from collections.abc import Callable
from functools import cache
from urllib.parse import quote

from npformer.language import ENGLISH, current_language, language_tag
from npformer.learn.course.glossary import Term, all_terms
from npformer.learn.course.lesson import Cell, Lesson, all_lessons
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
STARTED = re.compile(r"`npformer exercise start ([\w-]+)`")
# the commands of the lessons, for translators, whose steps have the names of the tour's model
EXPLORE = re.compile(r"npformer explore (?:\"[^\"]*\" )?--model (?:en-de|tour/run)\b")
VIEW = re.compile(r"`(#[^`\s]+=[^`\s]+)`")
EXPLORER_PAGE = "explorer/translator.html"
REPOSITORY = "https://github.com/npformer/npformer"  # setup.py has it for the metadata
PUBLISHED = "https://npformer.github.io/npformer"  # where the project's workflow publishes the site
# words that have an everyday meaning, too: they are linked from the lesson that introduces the term on
AMBIGUOUS = {
    "batch", "bias", "cache", "floor", "gradient", "head", "kernel", "key", "leak", "mask", "memory",
    "packing", "query", "saliency", "value", "decoder", "encoder", "checkpoint",
}  # fmt: skip


def document_of(lesson: Lesson) -> str:
    """Return the name of the document of a lesson, such as lessons/05_1 or lessons/01."""
    part = "" if lesson.part is None else f"_{lesson.part}"
    return f"lessons/{lesson.chapter:02}{part}"


def exercises_of(cell: Cell) -> list[str]:
    """Return the names of the exercises that a cell starts."""
    return list(dict.fromkeys(STARTED.findall(cell.text)))


def view_of(lesson: Lesson) -> str | None:
    """Return the view that a lesson opens, such as "#step=encoder.norm.y", "" for the first, or None."""
    for cell in lesson.cells:
        if cell.kind == "prose" and EXPLORE.search(cell.text):
            address = VIEW.search(cell.text)
            return address[1] if address else ""
    return None


def address_of(view: str, document: str) -> str:
    """Return the address of a view of the explorer, from a document in the current language."""
    in_english = current_language() == ENGLISH
    root = "../" * (document.count("/") + (not in_english))
    query = "" if in_english else f"?language={language_tag()}"
    return root + EXPLORER_PAGE + query + quote(view, safe="#=&.,:+-_")


def linker(lesson: Lesson) -> Callable[[str], str]:
    """Return a function that adds links to the prose of a lesson.

    They lead to the other lessons and the chapters that it names, without the names of their files, and from
    the first use of each term to the glossary.
    """
    used: set[str] = set()
    forms = forms_of(lesson)
    # the longest form first, so that "attention weight" is not read as "attention"
    sources = [re.escape(form).replace(r"\ ", r"\s+") for form in sorted(forms, key=len, reverse=True)]
    terms = rf"(?<![\w-])(?P<term>(?i:{'|'.join(sources)}))(?![\w-])"
    documents = {str(each.chapter): f"lessons/chapter_{each.chapter:02}" for each in all_lessons()}
    documents |= {each.number: document_of(each) for each in all_lessons()}
    documents.pop(lesson.number, None)

    def to_place(found: re.Match[str]) -> str:
        return f"[{found[0]}](/{documents[found[1]]}.md)" if found[1] in documents else found[0]

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
    return lambda prose: named.sub(link, NAMED.sub(r"\1", prose))


@cache
def terms_of_course() -> list[Term]:
    """Return all terms, which takes half a second."""
    return all_terms()


def forms_of(lesson: Lesson) -> dict[str, str]:
    """Return the names of the terms that a lesson may use, by every form of their names in lower case."""
    forms: dict[str, str] = {}
    for term in terms_of_course():
        first = min((place.path.name for place in term.lessons), default="")  # files in the course's order
        if term.name in AMBIGUOUS and lesson.path.name < first:
            continue
        # "length normalization, length penalty" and "rotary positions (RoPE)" are two names each
        for name in filter(None, re.split(r", | \(|\)", term.name)):
            for form in (name, f"{name}s", f"{name}es", re.sub("y$", "ies", name)):
                forms.setdefault(form.lower(), term.name)
    return forms
