"""npformer lessons: list the chapters and lessons of the course, with their lengths and your progress."""

from argparse import ArgumentParser, Namespace
from itertools import groupby
from pathlib import Path

from rich.text import Text

from npformer.cli.glossary import add_write, save_page
from npformer.cli.options import add, add_language, excludes
from npformer.cli.output import console
from npformer.cli.own_command import as_typed
from npformer.language import say
from npformer.learn.console import plain_table, styled
from npformer.learn.course.architecture import place_of
from npformer.learn.course.chapters import title_of_chapter
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.course.progress import LessonProgress, load_progress
from npformer.learn.course.references import SourceLocation
from npformer.learn.course.routes import MAIN, ROUTES, Route, length_of, routes_of
from npformer.learn.course.terminal import print_in_pages
from npformer.learn.site.lesson_links import PUBLISHED, document_of

RULES = (excludes("--write", "--route --language", "it writes all lessons, in English"),)

HEADING = """\
# The course

The chapters and lessons of the course, with the minutes of each lesson and what you can do afterwards. This
page was written by `npformer lessons --write`.

Run a lesson with `npformer lesson 0.0` in the terminal. `npformer lesson 0.0 --notebook` writes it as a
Jupyter notebook, and `npformer lesson 0.0 --html` as a page with its figures and typeset formulas. The title
of a lesson below leads to its file, and "read" to its page on the project's site, with all outputs. The line
below the title of a chapter shows which part of the architecture its lessons explain.

You need not read all lessons. `npformer lessons --route main` lists those of the main route, and
`--route engineers` those of the route for engineers. Each lesson names the next one on its route. The letters
of formulas and shapes are in [the notation](../docs/notation.md).

| route | length | lessons | what you have at its end |
|---|---|---|---|
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "--route", "list the lessons of one route only", ROUTES)
    add_write(parser, "README.md")
    add_language(parser)


def run(arguments: Namespace) -> int:
    """Print the table, or write all lessons as a page. Return 0."""
    if arguments.write is not None:
        save_page(arguments, as_page)
        return 0
    route = ROUTES[arguments.route] if arguments.route else None
    lessons, places = all_lessons() if route is None else route.lessons, load_progress()
    title, minutes, *others = say("lesson"), say("minutes"), say("routes"), say("progress")
    table = plain_table(">", title, f">{minutes}", *others, wrapped=("", title, minutes, *others))
    for chapter, group in groupby(lessons, key=lambda lesson: lesson.chapter):
        of_chapter = list(group)
        if len(of_chapter) > 1 and route is None:
            length = sum(minutes_of(lesson) for lesson in of_chapter)
            table.add_row(str(chapter), title_of_chapter(chapter), str(length), "", "", style="bold")
        for lesson in of_chapter:
            progress = progress_of(lesson, places.get(lesson.name, LessonProgress()))
            table.add_row(
                lesson.number, lesson.title, str(minutes_of(lesson)), _routes_cell(lesson), progress
            )
    commands = say(
        "Other commands of the course: npformer exercise (write functions), npformer bugs (find bugs), "
        "npformer glossary WORD (definitions), npformer index WORD (lesson and code of an equation)."
    )
    print_in_pages(
        console(),
        table,
        "",
        *_routes_or_length(route, lessons),
        _on(lessons, places, route),
        as_typed(commands),
    )
    return 0


def _routes_cell(lesson: Lesson) -> str:
    return ", ".join(route.name for route in routes_of(lesson))


def _routes_or_length(route: Route | None, lessons: list[Lesson]) -> list[Text]:
    """Return the length of the route, or how to see the routes if the list has all lessons."""
    if route is not None:
        title = say("The {title}", title=route.title)
        return [styled((title, "bold"), say(" ({length}): {goal}.", length=route.length, goal=route.goal))]
    hints = [
        styled(
            (as_typed(f"npformer lessons --route {each.name}"), "bold"),
            say(" ({length}): {goal}.", length=each.length, goal=each.goal),
        )
        for each in ROUTES.values()
    ]
    rest = say(" ({length}). You need not read all of them:", length=length_of(lessons))
    return [styled((say("All lessons"), "bold"), rest), *hints]


def _on(lessons: list[Lesson], places: dict[str, LessonProgress], route: Route | None) -> Text:
    """Return a line that says how to continue. Without a route, the lessons of the main route come first."""
    what = say("the course") if route is None else say("the {title}", title=route.title)
    if all(places.get(lesson.name, LessonProgress()).done for lesson in lessons):
        return styled(say("All lessons of {what} are done.", what=what))
    first = [lesson for lesson in lessons if route is None and MAIN in routes_of(lesson)]
    number = next_of([*first, *lessons], places).number
    how = say(" continues {what}.", what=what) if places else say(" begins {what}.", what=what)
    return styled((as_typed(f"npformer lesson {number}"), "bold"), how)


def progress_of(lesson: Lesson, place: LessonProgress) -> str:
    """Return the progress as text: done, a step, or nothing."""
    steps = len(lesson.steps)  # it may have become shorter
    step = min(place.step + 1, steps)
    begun = say("step {step} of {steps}", step=step, steps=steps) if place.begun else ""
    if place.done and begun:
        return say("done, now at {begun}", begun=begun)
    return begun or (say("done") if place.done else "")


def next_of(lessons: list[Lesson], places: dict[str, LessonProgress]) -> Lesson:
    """Return the first lesson that is begun, or else the first that is not done, or else the first one."""
    kept = {lesson: places.get(lesson.name, LessonProgress()) for lesson in lessons}
    begun = [lesson for lesson in lessons if kept[lesson].begun]
    unread = [lesson for lesson in lessons if not kept[lesson].done]
    return [*begun, *unread, *lessons][0]


def as_page(folder: Path) -> str:
    """Return the map of the course in Markdown, with links that work in this folder."""
    parts = [HEADING, *(_route_row(route, folder) for route in ROUTES.values())]
    for chapter, group in groupby(all_lessons(), key=lambda lesson: lesson.chapter):
        lessons = list(group)
        parts.append(f"\n## {chapter} · {title_of_chapter(chapter)}\n")
        place = place_of(f"{chapter:02}_")
        if place is not None:
            parts.append(f"\n`{place.line}`\n")
        parts.append("\n| lesson | page | minutes | routes | afterwards you can |\n|---|---|---|---|---|\n")
        parts += [_row(lesson, folder) for lesson in lessons]
    return "".join(parts)


def _row(lesson: Lesson, folder: Path) -> str:
    name = f"{lesson.number} {lesson.title}"
    link = SourceLocation(name, lesson.path, 1).link(folder, name)
    goals = "; ".join(lesson.goals).replace("|", "\\|")
    page = f"[read]({PUBLISHED}/{document_of(lesson)}.html)"
    return f"| {link} | {page} | {minutes_of(lesson)} | {_routes_cell(lesson)} | {goals} |\n"


def _route_row(route: Route, folder: Path) -> str:
    links = ", ".join(
        SourceLocation(lesson.number, lesson.path, 1).link(folder, lesson.number) for lesson in route.lessons
    )
    return f"| {route.name} | {route.length} | {links} | {route.goal} |\n"
