"""npformer lesson: step through a lesson of the course, or write it as a notebook or a page."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from npformer.cli.options import add_language, excludes
from npformer.cli.output import console, print_line
from npformer.cli.own_command import as_typed
from npformer.errors import UserError
from npformer.language import say
from npformer.learn.console import styled
from npformer.learn.course.export import as_notebook, as_page
from npformer.learn.course.lesson import NUMBER, Lesson, all_lessons, find_chapter
from npformer.learn.course.pictures import FOLDER
from npformer.learn.course.progress import LessonProgress, last_lesson, load_progress
from npformer.learn.course.routes import ENGINEERS, MAIN, next_on, place_on_routes, routes_of
from npformer.learn.course.stepper import Stepper
from npformer.learn.course.terminal import lesson_console, lines_of
from npformer.learn.exercises import EXERCISES
from npformer.storage.atomic import PAGES, require_place, write_file

EPILOG = """\
In the lesson: Enter continues, b goes back, s NAME shows a variable,
!LINE runs a line of Python, o opens the last figure, c shows
folded code, q quits, ? shows all keys. Without a terminal
(npformer lesson 5.1 | less) the lesson runs from top to bottom."""

NOTEBOOKS = (".ipynb",)  # the ending that Jupyter and Colab need

RULES = (
    excludes("--notebook", "--restart --figures", "it writes the lesson and does not step through it"),
    excludes("--html", "--restart --figures", "it writes the lesson and does not step through it"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "which",
        nargs="?",
        help="the number or name of a lesson, such as 4.2; the number of a chapter, such as 4, opens "
        "its first unfinished lesson (default: the last lesson you read, or the next if that is done)",
    )
    parser.add_argument(
        "--restart", action="store_true", help="begin at the first step and not where you stopped"
    )
    parser.add_argument(
        "--notebook",
        nargs="?",
        const="",
        metavar="FILE",
        help="write the lesson as a Jupyter notebook with outputs and figures (NAME.ipynb)",
    )
    parser.add_argument(
        "--html",
        nargs="?",
        const="",
        metavar="FILE",
        help="write the lesson as a web page with outputs and figures (NAME.html)",
    )
    add_language(parser)
    parser.add_argument("--figures", default=FOLDER, metavar="FOLDER", help="the folder for the figures")


def run(arguments: Namespace) -> int:
    """Step through the lesson or write it. Return 0, or 1 if a cell failed on the way."""
    _mend_order(arguments)
    lesson, notes = _open(arguments.which)
    if arguments.notebook is None and arguments.html is None:
        return _step(lesson, notes, arguments)
    for text in notes:
        print_line(text)
    if arguments.notebook is not None:
        path = Path(arguments.notebook or f"{lesson.name}.ipynb")
        _write(path, as_notebook, lesson, how=say("open it with Jupyter, VS Code or Colab"), keep=True)
    if arguments.html is not None:
        _write(
            Path(arguments.html or f"{lesson.name}.html"), as_page, lesson, how=say("open it in a browser")
        )
    return 0


def _step(lesson: Lesson, notes: list[str], arguments: Namespace) -> int:
    """Print the notes and step through the lesson in the terminal, from where the reader stopped."""
    place = load_progress().get(lesson.name, LessonProgress())
    stops = sys.stdin.isatty() and sys.stdout.isatty()
    begin = 0 if arguments.restart or not stops else min(place.step, len(lesson.steps) - 1)
    out = lesson_console(console())
    stepper = Stepper(
        lesson,
        out,
        Path(arguments.figures),
        stops=stops,
        done=place.done,
        command=as_typed(f"npformer lesson {lesson.number}"),
        next=_next(lesson),
    )
    if begin:
        title = f"{lesson.number} · {lesson.title}"
        on = say("You go on at step {step}; g 1 goes back to step 1.", step=begin + 1)
        opening = styled((title, "bold"), f": {on}")
    else:
        opening = styled((place_on_routes(lesson), "dim"))
    for text in (*map(styled, notes), opening):
        stepper.screen.write(lines_of(out, text))  # the screen counts these lines
    return stepper.walk(begin)


def _next(lesson: Lesson) -> str:
    """Return the lines that say what to do after the lesson."""
    lessons, lines = all_lessons(), []
    if any(exercise.chapter == lesson.chapter for exercise in EXERCISES):
        command = f"npformer exercise list {lesson.chapter}"
        lines.append(say("Exercises of this chapter: {command}", command=command))
    after = next(iter(lessons[lessons.index(lesson) + 1 :]), None)
    if after is None:
        lines.append(say("That was the last lesson. To find bugs in programs, run npformer bugs"))
    routes = routes_of(lesson) or [MAIN]
    following = [next_on(route, lesson) for route in routes]
    if MAIN in routes and (main := next_on(MAIN, lesson)):
        lines.append(say("Next on the main route: {command}", command=_command(main)))
    if ENGINEERS in routes and (engineers := next_on(ENGINEERS, lesson)):
        lines.append(say("Next on the route for engineers: {command}", command=_command(engineers)))
    if after is not None and after not in following:
        lines.append(say("Next of all lessons: {command}", command=_command(after)))
    return as_typed("\n".join(lines))


def _command(lesson: Lesson) -> str:
    """Return the command that opens a lesson, with its title."""
    return f"npformer lesson {lesson.number} ({lesson.title})"


def _mend_order(arguments: Namespace) -> None:
    """Read `npformer lesson --html 5.1` as lesson 5.1, not as a file with this name."""
    for option in ("notebook", "html"):
        given = getattr(arguments, option)
        if given and NUMBER.fullmatch(given) and arguments.which is None:
            arguments.which = given
            setattr(arguments, option, "")


def _open(which: str | None) -> tuple[Lesson, list[str]]:
    """Return the lesson with a number or name, or else the last one, and notes about the choice.

    Of a chapter, it is the first lesson that is not finished.
    """
    if which is None:
        return _open_last(), []
    lessons, progress = find_chapter(which), load_progress()
    if len(lessons) == 1:
        return lessons[0], []
    unfinished = [lesson for lesson in lessons if not progress.get(lesson.name, LessonProgress()).done]
    lesson = [*unfinished, *lessons][0]
    notes = [say("Chapter {chapter} has {count} lessons.", chapter=lesson.chapter, count=len(lessons))]
    opened = f"{lesson.number} ({lesson.title})"
    if unfinished:
        notes.append(say("Lesson {opened} is the first that you have not finished.", opened=opened))
    else:
        notes.append(say("You have finished all of them, and this is lesson {opened}.", opened=opened))
    return lesson, notes


def _open_last() -> Lesson:
    """Return the lesson that was open last, or the first one.

    If its end was reached, return the next one on the main route, or of all lessons if it is on no route.
    """
    lessons, name = all_lessons(), last_lesson()
    last = next((n for n, lesson in enumerate(lessons) if lesson.name == name), None)
    if last is None:
        return lessons[0]
    place = load_progress().get(lessons[last].name, LessonProgress())
    if place.begun or not place.done:
        return lessons[last]
    following = next_on(MAIN, lessons[last]) if MAIN in routes_of(lessons[last]) else None
    return following or lessons[min(last + 1, len(lessons) - 1)]


def _write(
    path: Path, make: Callable[[Lesson], str], lesson: Lesson, *, how: str, keep: bool = False
) -> None:
    """Write a file and print how to open it. With `keep`, refuse to replace a file that exists."""
    if keep and path.exists():
        raise UserError(f"{path} exists and may contain your work: give another name, or remove it")
    endings = NOTEBOOKS if keep else PAGES
    require_place(path, advice="give another FILE", endings=endings)  # before the lesson is run
    write_file(path, make(lesson).encode(), advice="give another FILE")
    print_line(say("wrote {path}: {how}", path=path, how=how))
