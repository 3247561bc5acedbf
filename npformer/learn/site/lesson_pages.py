"""The documents of the lessons: each is run once, and has its outputs, figures and exercises."""

import re
from collections.abc import Callable
from html import escape
from urllib.parse import quote

from npformer.escaping import printable
from npformer.language import ENGLISH, current_language, say, speaking
from npformer.learn.course.execute import Outcome
from npformer.learn.course.export import map_of, run_without_error
from npformer.learn.course.lesson import Cell, Lesson
from npformer.learn.course.prose import split_answers
from npformer.learn.course.routes import place_on_routes
from npformer.learn.exercises import EXERCISES, Exercise
from npformer.learn.site.lesson_links import NAMED, document_of, linker
from npformer.learn.site.markdown import Files, code, folded, page, picture, quoted, raw, text

# lessons with these names in their code share a trained model: they are run in one process, in this order
SHARED_RUN = re.compile(r"course\.trained import .*\b(?:trained|FOLDER)\b")
STARTED = re.compile(r"`npformer exercise start (?P<name>[\w-]+)`")
# the commands of the lessons, for translators, whose steps have the names of the tour's model
EXPLORE = re.compile(r"npformer explore (?:\"[^\"]*\" )?--model (?:en-de|tour/run)\b")
VIEW = re.compile(r"`(#[^`\s]+=[^`\s]+)`")
EXPLORER = "explorer/translator.html"


def lesson_files(lesson: Lesson, *, has_explorer: bool) -> Files:
    """Run a lesson and return its document and its pictures.

    Args:
        lesson: The lesson.
        has_explorer: Whether the site has the page of the explorer.

    Raises:
        UserError: If a cell fails.
    """
    files, link = Files(), linker(lesson)
    with speaking(lesson.language):
        parts = [
            _prose(cell, lesson, link, has_explorer=has_explorer)
            if outcome is None
            else _code(cell, outcome, lesson, files)
            for cell, outcome in run_without_error(lesson, "page")
        ]
        parts.insert(1, f"*{text(place_on_routes(lesson))}*")
        if shown := map_of(lesson):
            drawn = picture(files, f"lessons/maps/{shown.name}", shown.figure, shown.caption)
            parts.insert(2, folded(say("Show this part in the architecture"), drawn))
    keywords = " ".join([lesson.words.replace("_", " "), *lesson.goals])
    head = f"---\nkeywords: {quoted(keywords)}\n---\n\n"
    return files | {f"{document_of(lesson)}.md": (head + "\n\n".join(parts)).encode()}


def shares_a_run(lesson: Lesson) -> bool:
    """Return whether a lesson trains or reads the translator that several lessons share."""
    return any(SHARED_RUN.search(cell.text) for cell in lesson.cells if cell.kind == "code")


def view_of(lesson: Lesson) -> str | None:
    """Return the view that a lesson opens, such as "#step=encoder.norm.y", "" for the first, or None."""
    for cell in lesson.cells:
        if cell.kind == "prose" and EXPLORE.search(cell.text):
            address = VIEW.search(cell.text)
            return address[1] if address else ""
    return None


def address_of(view: str) -> str:
    """Return the address of a view of the explorer in the current language, from the folder of the site."""
    language = current_language()
    query = "" if language == ENGLISH else f"?language={language.replace('_', '-')}"
    return EXPLORER + query + quote(view, safe="#=&.,:+-_")


def root_from(document: str) -> str:
    """Return where the folder of the site is, from a document in the current language."""
    return "../" * (document.count("/") + (current_language() != ENGLISH))


def exercises_of(lesson: Lesson) -> list[str]:
    """Return the names of the exercises that a lesson starts."""
    prose = "\n".join(cell.text for cell in lesson.cells if cell.kind == "prose")
    return list(dict.fromkeys(found["name"] for found in STARTED.finditer(prose)))


def _prose(cell: Cell, lesson: Lesson, link: Callable[[str], str], *, has_explorer: bool) -> str:
    """Return a cell of prose with links, the exercises and the view of the explorer that it names."""
    parts = [
        folded(part.title, link(part.text)) if part.kind == "answer" else link(part.text)
        for part in split_answers(NAMED.sub(r"\1", cell.text))
    ]
    names = dict.fromkeys(found["name"] for found in STARTED.finditer(cell.text))
    added = [_exercise(EXERCISES.find(name)) for name in names]
    if has_explorer and EXPLORE.search(cell.text):
        added.append(_view(view_of(lesson) or ""))
    shown = "\n\n".join(parts)
    following = re.search(rf"^\*\*{say('Next')}\*\*", shown, re.MULTILINE)
    at = following.start() if following else len(shown)
    return "\n\n".join([shown[:at], *added, shown[at:]])


def _code(cell: Cell, outcome: Outcome, lesson: Lesson, files: Files) -> str:
    """Return a cell of code with its output, its definitions and its figures."""
    shown = code(cell.text)
    parts = [folded(cell.summary, shown, "folded") if cell.tags else shown]
    if outcome.printed:
        parts.append(code(outcome.printed.rstrip(), "text", "output"))
    if outcome.defined and not cell.tags:
        names = escape(printable(" ∙ ".join(outcome.defined)))
        parts.append(raw(f'<div class="defined">→ {names}</div>'))
    for each in outcome.pictures:
        path = f"{document_of(lesson)}/{each.name}"
        while f"{path}.svg" in files or f"{path}.png" in files:
            path += "_2"
        parts.append(picture(files, path, each.figure, each.caption, each.name if not each.caption else ""))
    return "\n\n".join(parts)


def _exercise(exercise: Exercise) -> str:
    """Return an exercise: what to write, how to check it, and one folded hint after the other."""
    functions = ", ".join(f"`{name}`" for name in exercise.functions)
    title = say("Exercise {name}: {title}", name=exercise.name, title=exercise.title)
    return folded(title, page("exercise", exercise=exercise, functions=functions).decode(), "exercise")


def _view(view: str) -> str:
    """Return the explorer with a view, folded: the picture and the arithmetic alone."""
    shown = page("view", address=f"{root_from('lessons/')}{address_of(view)}")
    return folded(say("Open the explorer here"), shown.decode(), "live")
