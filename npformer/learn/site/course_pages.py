"""The home page, the contents of the course with its map, the chapters, the exercises and the glossary."""

from collections.abc import Collection, Sequence
from itertools import groupby
from pathlib import Path

from npformer.language import GLOSSARY, INTERFACE, later, phrase, say
from npformer.learn.course.architecture import place_of
from npformer.learn.course.chapters import TITLES
from npformer.learn.course.glossary import SHAPES, Term, all_terms
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.routes import MAIN, ROUTES, Route
from npformer.learn.exercises import EXERCISES
from npformer.learn.site.lesson_links import REPOSITORY, document_of
from npformer.learn.site.lesson_pages import address_of, exercises_of, root_from
from npformer.learn.site.markdown import FENCE, Files, code, document, listed, picture, raw, text

DOORS = [
    (
        later("Learn"),
        "lessons/index",
        later(
            "{count} lessons from words to a translator, each with its results, its figures and exercises."
        ),
        {
            "lessons/index": later("The course"),
            "exercises": later("Exercises"),
            "zoo/index": later("The bug zoo"),
            "glossary": later("Glossary"),
        },
    ),
    (
        later("Check"),
        "docs/gradient-checking",
        later("Is the backward pass of your own layer right? Find out in NumPy, PyTorch or JAX."),
        {
            "docs/gradient-checking": later("Check gradients"),
            "docs/index": later("Guides"),
            "reference/index": later("Reference"),
        },
    ),
    (
        later("Look"),
        "explorer",
        later("A small translator that computes in your browser: every number, forward and backward."),
        {"explorer": later("The explorer"), "gallery": later("Gallery")},
    ),
]
RUN = f"git clone {REPOSITORY}\ncd npformer\npython -m pip install .\nnpformer tour"


def home_page(lessons: Sequence[Lesson], documents: Collection[str]) -> Files:
    """Return the first page of the site in the current language, with its three doors.

    Args:
        lessons: The lessons of the site.
        documents: The names of the other documents in this language. Links to others lead to English.
    """
    doors = []
    for name, entrance, offer, links in DOORS:
        shown = " · ".join(f"[{phrase(title, INTERFACE)}](/{path}.md)" for path, title in links.items())
        title = f"[{phrase(name, INTERFACE)}](/{entrance}.md)"
        doors.append(f"- **{title}**\n\n  {phrase(offer, INTERFACE, count=len(lessons))}\n\n  {shown}")
    route = [f"1. [{each.number} · {text(each.title)}](/{document_of(each)}.md)" for each in MAIN.lessons]
    flow = (
        f'<iframe class="wide-only" src="{root_from("")}{address_of("")}" loading="lazy" '
        f'title="{say("The explorer")}"></iframe>'
    )
    parts = [
        say(
            "The Transformer of *Attention Is All You Need* and its family in NumPy. Every backward pass is "
            "written by hand, and every gradient is checked."
        ),
        f"{FENCE}{{container}} doors\n" + "\n".join(doors) + f"\n{FENCE}",
        f"[{say('Who reads what first')}](/start-here.md)",
        *([raw(flow)] if "explorer" in documents else []),
        f"## {say('The main route')}\n\n" + "\n".join(route),
        f"## {say('Run it yourself')}",
        say("npformer needs Python 3.11 or later. It needs neither a GPU nor another framework. Run:"),
        code(RUN, "text"),
        say(
            "The tour trains a small translator, translates new sentences, checks every gradient and draws "
            "attention. It takes about four minutes on two CPU cores."
        ),
    ]
    course = ["lessons/index"] if "lessons/index" in documents else map(document_of, lessons)
    groups = {
        say("Learn"): ["start-here", *course, "exercises", "zoo/index", "glossary"],
        say("Look"): ["explorer", "gallery"],
        say("Check and use"): ["docs/index", "docs/gradient-checking", "docs/teaching", "reference/index"],
    }
    for caption, group in groups.items():
        below = [each for each in group if each in documents]
        if "docs/index" in below:  # it lists the other guides
            below = [each for each in below if not each.startswith("docs/") or each == "docs/index"]
        parts.append(listed([f"/{each}" for each in below], caption))
    return {"index.md": document("npformer", parts, "home install start")}


def course_pages(lessons: Sequence[Lesson]) -> Files:
    """Return the contents, the chapters that have several lessons, and the list of the exercises."""
    from npformer.learn.figures.course_map import course_map  # matplotlib takes a second to load

    chapters = {number: list(group) for number, group in groupby(lessons, lambda each: each.chapter)}
    files, entries, rows = Files(), [], []
    for number, group in chapters.items():
        path = f"lessons/chapter_{number:02}" if len(group) > 1 else document_of(group[0])
        entries.append(f"/{path}")
        rows.append(f"- [{number} · {text(TITLES[number])}](/{path}.md)")
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
        "\n".join(_route(route) for route in ROUTES.values()),
        "## The chapters",
        "\n".join(rows),
        "## The map",
        picture(files, "lessons/course_map", course_map(), caption),
        listed(entries),
    ]
    files["lessons/index.md"] = document("The course", parts, "contents chapters lessons")
    files["exercises.md"] = _exercise_list(lessons)
    return files


def _route(route: Route) -> str:
    """Return a route with links to its lessons."""
    links = ", ".join(f"[{each.number}](/{document_of(each)}.md)" for each in route.lessons)
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
    return document(f"{number} · {text(TITLES[number])}", parts)


def _exercise_list(lessons: Sequence[Lesson]) -> bytes:
    """Return the list of all exercises, each with a link to the lesson that starts it."""
    where = {name: lesson for lesson in reversed(lessons) for name in exercises_of(lesson)}
    parts = [
        f"In {len(list(EXERCISES))} exercises you write a function of the package yourself. "
        "`npformer exercise start softmax` writes a file with the missing function, and "
        "`npformer exercise check` runs it and says what is wrong. When you have solved them, "
        "`npformer build` assembles your functions into a Transformer that translates."
    ]
    ordered = sorted(EXERCISES, key=lambda each: each.chapter)
    for number, group in groupby(ordered, lambda each: each.chapter):
        rows = []
        for each in group:
            lesson = where.get(each.name)
            name = f"[{each.name}](#exercise-{each.name})" if lesson else each.name
            rows.append(
                f"- **{name}**: {text(each.title)}" + (f" (lesson {lesson.number})" if lesson else "")
            )
        parts.append(f"## {number} · {text(TITLES[number])}\n\n" + "\n".join(rows))
    return document("Exercises", parts, "practice homework")


def glossary_page(lessons: Sequence[Lesson]) -> Files:
    """Return the glossary in the current language: each term, its definition, the lessons that explain it."""
    by_path = {lesson.path: lesson for lesson in lessons}
    entries = "\n\n".join(_entry(term, by_path) for term in all_terms())
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
