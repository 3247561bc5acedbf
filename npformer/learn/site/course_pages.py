"""The home page, the contents of the course with its map, the chapters, the exercises and the glossary."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from npformer.language import ENGLISH, GLOSSARY, catalog, current_language, phrase, say
from npformer.learn.course.architecture import place_of
from npformer.learn.course.chapters import title_of_chapter
from npformer.learn.course.glossary import SHAPES, Term, all_terms
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.routes import ROUTES, Route
from npformer.learn.exercises import EXERCISES
from npformer.learn.site.lesson_links import REPOSITORY, document_of
from npformer.learn.site.lesson_pages import EXPLORER, exercises_of
from npformer.learn.site.markdown import FENCE, Files, code, document, listed, picture, raw, text

DOORS = {
    "Learn": (
        "lessons/index",
        "{} lessons from words to a translator, each with its results, its figures and exercises.",
        {
            "lessons/index": "The course",
            "exercises": "Exercises",
            "zoo/index": "The bug zoo",
            "glossary": "Glossary",
        },
    ),
    "Check": (
        "docs/gradient-checking",
        "Is the backward pass of your own layer right? Find out in NumPy, PyTorch or JAX.",
        {"docs/gradient-checking": "Check gradients", "docs/index": "Guides", "reference/index": "Reference"},
    ),
    "Look": (
        "explorer",
        "A small translator that computes in your browser: every number, forward and backward.",
        {"explorer": "The explorer", "gallery": "Gallery"},
    ),
}
LEAD = """\
The Transformer of *Attention Is All You Need* and its family in NumPy. Every backward pass is written by
hand, and every gradient is checked."""
RUN = """\
npformer needs Python 3.11 or later. It needs neither a GPU nor another framework. Run:"""
TOUR = """\
The tour trains a small translator, translates new sentences, checks every gradient and draws attention. It
takes about four minutes on two CPU cores."""


def home_page(lessons: Sequence[Lesson], documents: set[str]) -> Files:
    """Return the first page of the site, with its three doors.

    Args:
        lessons: The lessons of the site.
        documents: The names of the other documents.
    """
    doors = []
    for name, (entrance, offer, links) in DOORS.items():
        shown = " · ".join(f"[{title}](/{path}.md)" for path, title in links.items() if path in documents)
        title = f"[{name}](/{entrance}.md)" if entrance in documents else name
        doors.append(f"- **{title}**\n\n  {offer.format(len(lessons))}\n\n  {shown}")
    first = lessons[0]
    begin = f"[Begin with lesson {first.number}: {text(first.title)}](/{document_of(first)}.md)"
    if "start-here" in documents:
        begin += " or read [who reads what first](/start-here.md)."
    flow = f'<iframe class="wide-only" src="{EXPLORER}" loading="lazy" title="The explorer"></iframe>'
    run = code(f"git clone {REPOSITORY}\ncd npformer\npython -m pip install .\nnpformer tour", "text")
    parts = [
        LEAD,
        f"{FENCE}{{container}} doors\n" + "\n".join(doors) + f"\n{FENCE}",
        begin,
        *([raw(flow)] if "explorer" in documents else []),
        f"## Run it yourself\n\n{RUN}\n\n{run}\n\n{TOUR}",
    ]
    groups = {
        "Learn": ["start-here", "lessons/index", "exercises", "zoo/index", "glossary"],
        "Look": ["explorer", "gallery"],
        "Check and use": ["docs/index", "reference/index"],
    }
    for caption, group in groups.items():
        parts.append(listed([each for each in group if each in documents], caption))
    return {"index.md": document("npformer", parts, "home install start")}


def course_pages(lessons: Sequence[Lesson]) -> Files:
    """Return the contents, the chapters that have several lessons, and the list of the exercises."""
    from npformer.learn.figures.course_map import course_map  # matplotlib takes a second to load

    chapters = {number: list(group) for number, group in groupby(lessons, lambda each: each.chapter)}
    files, entries, rows = Files(), [], []
    for number, group in chapters.items():
        path = f"lessons/chapter_{number:02}" if len(group) > 1 else document_of(group[0])
        entries.append(f"/{path}")
        rows.append(f"- [{number} · {text(title_of_chapter(number))}](/{path}.md)")
        if len(group) > 1:
            files[f"{path}.md"] = _chapter(number, group)
    hours = round(sum(map(minutes_of, lessons)) / 60)
    caption = "The architecture of the Transformer. Beside each part stands the chapter that explains it."
    parts = [
        f"{len(lessons)} lessons in {len(chapters)} chapters, about {hours} hours. You can read the lessons "
        "here with all their results, or run them: `npformer lesson 0.0` steps through a lesson in the "
        "terminal, and `npformer lesson 0.0 --notebook` writes it as a notebook. A "
        "[list of exercises](/exercises.md) has the functions to write yourself.",
        "## Routes",
        "You need not read all lessons. Two routes lead through them:",
        "\n".join(_route(route, lessons) for route in ROUTES.values()),
        "## The chapters",
        "\n".join(rows),
        "## The map",
        picture(files, "lessons/course_map", course_map(), caption),
        listed(entries),
    ]
    files["lessons/index.md"] = document("The course", parts, "contents chapters lessons")
    return files | exercise_list(lessons)


def _route(route: Route, lessons: Sequence[Lesson]) -> str:
    """Return a route with links to its lessons, as far as the site has them."""
    links = ", ".join(
        f"[{each.number}](/{document_of(each)}.md)" if each in lessons else each.number
        for each in route.lessons
    )
    return f"- **The {route.title}** ({route.length}): {text(route.goal)}. Lessons {links}."


def _chapter(number: int, lessons: Sequence[Lesson]) -> bytes:
    """Return the document of a chapter: its lessons, with what one can do after each."""
    place = place_of(f"{number:02}_")
    rows = [
        f"- [{each.number} · {text(each.title)}](/{document_of(each)}.md), {minutes_of(each)} minutes\n\n"
        f"  {text('; '.join(each.goals))}"
        for each in lessons
    ]
    parts = [
        f"`{place.line}`" if place else "",
        "\n".join(rows),
        listed([f"/{document_of(each)}" for each in lessons]),
    ]
    return document(f"{number} · {text(title_of_chapter(number))}", parts)


def exercise_list(lessons: Sequence[Lesson]) -> Files:
    """Return the list of all exercises in the current language, with links to the lessons that start them."""
    where = {name: lesson for lesson in reversed(lessons) for name in exercises_of(lesson)}
    parts = [
        say(
            "In {count} exercises you write a function of the package yourself. `npformer exercise start "
            "softmax` writes a file with the missing function, and `npformer exercise check` runs it and "
            "says what is wrong. When you have solved them, `npformer build` assembles your functions into a "
            "Transformer that translates.",
            count=len(list(EXERCISES)),
        )
    ]
    ordered = sorted(EXERCISES, key=lambda each: each.chapter)
    for number, group in groupby(ordered, lambda each: each.chapter):
        rows = []
        for each in group:
            lesson = where.get(each.name)
            name = f"[{each.name}](#exercise-{each.name})" if lesson else each.name
            where_it_starts = say(" (lesson {number})", number=lesson.number) if lesson else ""
            rows.append(say("- **{name}**: {title}", name=name, title=text(each.title)) + where_it_starts)
        heading = f"## {number} · {text(title_of_chapter(number))}"
        language = current_language()
        if language != ENGLISH and not catalog(language, each.catalog):
            heading += say(" (in English)")
        parts.append(f"{heading}\n\n" + "\n".join(rows))
    return {"exercises.md": document(say("Exercises"), parts, "practice homework")}


def glossary_page(lessons: Sequence[Lesson]) -> Files:
    """Return the glossary in the current language: each term, its definition, the lessons that explain it."""
    documents = {lesson.path: lesson for lesson in lessons}
    entries = "\n\n".join(_entry(term, documents) for term in all_terms())
    glossary = f"{FENCE}{{glossary}}\n{entries}\n{FENCE}"
    shapes = text(phrase(SHAPES, GLOSSARY))
    return {"glossary.md": document(say("Glossary"), [shapes, glossary], "terms definitions")}


def _entry(term: Term, documents: dict[Path, Lesson]) -> str:
    """Return a term with its Chinese name, its definition, and links to its lessons."""
    found = dict.fromkeys(documents[place.path] for place in term.lessons if place.path in documents)
    links = ", ".join(f"[{each.number}](/{document_of(each)}.md)" for each in found)
    explained = f" *{say('Lesson {links}', links=links)}*" if links else ""
    names = "\n".join(term.names)
    return f"{names}\n    {text(term.meaning)}{explained}"
