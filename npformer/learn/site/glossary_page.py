"""The glossary: every term with its definition and the lessons that explain it."""

import re
from collections.abc import Collection
from html import escape
from itertools import groupby
from pathlib import Path

from npformer.learn.course.glossary import SHAPES, Term, all_terms
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.references import SourceLocation
from npformer.learn.site.lesson_links import page_of
from npformer.learn.site.page import Page
from npformer.learn.site.term_links import id_of

GLOSSARY = "glossary.html"


def glossary_page(lessons: Collection[Lesson]) -> Page:
    """Return the page of the glossary.

    Args:
        lessons: The lessons of the site, which can be linked.
    """
    pages = {lesson.path: page_of(lesson) for lesson in lessons}
    groups = [(letter, list(terms)) for letter, terms in groupby(all_terms(), key=_letter)]
    letters = " ".join(f'<a href="#letter-{letter.lower()}">{letter}</a>' for letter, _ in groups)
    body = [
        "<h1>Glossary</h1>",
        f"<p>{escape(SHAPES)}</p>",
        f'<p class="letters">{letters}</p>',
    ]
    for letter, terms in groups:
        entries = "\n".join(_entry(term, pages) for term in terms)
        body.append(
            f'<h2 id="letter-{letter.lower()}">{letter}</h2>\n<dl class="glossary">\n{entries}\n</dl>'
        )
    keywords = tuple(term.chinese for term in all_terms() if term.chinese)
    return Page(GLOSSARY, "Glossary", "Glossary", "\n".join(body), {}, ("terms", "definitions", *keywords))


def _letter(term: Term) -> str:
    return term.name[0].upper()


def _entry(term: Term, pages: dict[Path, str]) -> str:
    """Return a term with its definition, and links to its lessons."""
    chinese = f' <span lang="zh">{escape(term.chinese)}</span>' if term.chinese else ""
    meaning = re.sub("`([^`]*)`", r"<code>\1</code>", escape(term.meaning))
    lessons = ", ".join(dict.fromkeys(_lesson(place, pages) for place in term.lessons))
    explained = f' <small class="where">Lesson {lessons}</small>' if lessons else ""
    return f'<dt id="{id_of(term)}">{escape(term.name)}{chinese}</dt>\n<dd>{meaning}{explained}</dd>'


def _lesson(place: SourceLocation, pages: dict[Path, str]) -> str:
    """Return a link to a lesson, or its number if the site does not have it."""
    number = re.match(r"lesson ([\d.]+)", place.name)
    shown = number[1] if number else escape(place.name)
    return f'<a href="{pages[place.path]}">{shown}</a>' if place.path in pages else shown
