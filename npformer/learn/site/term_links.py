"""Links from the first use of each term on a page to its definition in the glossary."""

import re
from collections.abc import Sequence
from functools import cache
from html import escape

from npformer.learn.course.glossary import Term, all_terms
from npformer.learn.course.lesson import Lesson
from npformer.learn.site.html_text import replace_text, slug

# words that have an everyday meaning, too: they are linked from the lesson that introduces the term on
AMBIGUOUS = {
    "batch", "bias", "cache", "floor", "gradient", "head", "kernel", "key", "leak", "mask", "memory",
    "packing", "query", "saliency", "value", "decoder", "encoder", "checkpoint",
}  # fmt: skip
# a div contains code, or the names that a cell defines
NOT_IN = ("a", "code", "pre", "div", "math", "h1", "h2", "h3", "summary", "figcaption")


def id_of(term: Term) -> str:
    """Return the id of a term on the page of the glossary."""
    return slug(term.name)


def link_terms(html: str, lesson: Lesson, glossary: str) -> str:
    """Link the first use of each term in the HTML of a lesson.

    Args:
        html: The HTML of the page.
        lesson: The lesson.
        glossary: The address of the glossary, relative to the page.
    """
    forms = _forms([term for term in _terms() if _is_linked(term, lesson)])
    # the longest form first, so that "attention weight" is not read as "attention"
    sources = [re.escape(escape(form)) for form in sorted(forms, key=len, reverse=True)]
    # the words of a form may stand on two lines
    alternatives = "|".join(sources).replace(r"\ ", r"\s+")
    pattern = re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])", re.IGNORECASE)
    seen: set[str] = set()

    def linked(found: re.Match[str]) -> str:
        text = " ".join(found[0].split())
        term = forms.get(text) or forms.get(text.lower())
        if term is None or term.name in seen:
            return found[0]
        seen.add(term.name)
        return f'<a class="term" href="{glossary}#{id_of(term)}">{found[0]}</a>'

    return replace_text(html, lambda text: pattern.sub(linked, text), NOT_IN)


@cache
def _terms() -> list[Term]:
    """Return all terms, which takes half a second the first time."""
    return all_terms()


def _forms(terms: Sequence[Term]) -> dict[str, Term]:
    """Return every form of the names of the terms: each of several names, and its plural."""
    forms: dict[str, Term] = {}
    for term in terms:
        # "length normalization, length penalty" and "rotary positions (RoPE)" are two names each
        for name in filter(None, re.split(r", | \(|\)", term.name)):
            forms.setdefault(name, term)
            plural = (
                f"{name[:-1]}ies" if re.search(r"[^aeiou]y$", name) else f"{name}{'e' * name.endswith('s')}s"
            )
            forms.setdefault(plural, term)
    return forms


def _is_linked(term: Term, lesson: Lesson) -> bool:
    """Return whether a lesson may use the word in the sense of the term."""
    if term.name not in AMBIGUOUS or not term.lessons:
        return True
    return lesson.path.name >= min(place.path.name for place in term.lessons)  # files in the course's order
