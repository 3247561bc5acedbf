"""npformer lesson: step through a lesson, or write it as a notebook or a page."""

import sys
from collections.abc import Callable
from pathlib import Path

from rich.markup import escape

from npformer.atomic import write_atomically
from npformer.course.library import Lesson, all_lessons, find_lesson
from npformer.course.notebook import as_notebook
from npformer.course.page import as_page
from npformer.course.pictures import FOLDER
from npformer.course.places import Place, last_lesson, load_places
from npformer.course.render import lesson_console
from npformer.course.stepper import Stepper
from npformer.errors import UserError
from npformer.exercises import EXERCISES

EPILOG = """\
In the lesson: Enter goes on, b back, s NAME shows a variable, !LINE runs a line of Python, q quits, ? helps.
Without a terminal (npformer lesson 5 | less) it runs from top to bottom."""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.epilog = EPILOG
    parser.add_argument(
        "which",
        nargs="?",
        help="a number or a name (default: where you left off; where that was an end, the next lesson)",
    )
    parser.add_argument("--restart", action="store_true", help="begin at the top, not where you left")
    parser.add_argument(
        "--notebook",
        nargs="?",
        const="",
        metavar="FILE",
        help="write it as a Jupyter notebook (NN_title.ipynb)",
    )
    parser.add_argument(
        "--html",
        nargs="?",
        const="",
        metavar="FILE",
        help="write it as a page with outputs and figures (NN_title.html)",
    )
    parser.add_argument(
        "--figures", default=FOLDER, metavar="FOLDER", help=f"where figures are saved ({FOLDER})"
    )


def run(arguments) -> int:
    """Returns 0, or 1 where a cell failed in a lesson that ran from top to bottom."""
    _mend_order(arguments)
    lesson = _open_last() if arguments.which is None else find_lesson(arguments.which)
    if arguments.notebook is not None:
        path, how = Path(arguments.notebook or f"{lesson.name}.ipynb"), "open it with Jupyter"
        _write(path, as_notebook, lesson, how=f"{how}, where npformer is installed", keep=True)
    if arguments.html is not None:
        _write(Path(arguments.html or f"{lesson.name}.html"), as_page, lesson, how="open it in a browser")
    if arguments.notebook is None and arguments.html is None:
        return _step(lesson, arguments)
    return 0


def _step(lesson: Lesson, arguments) -> int:
    """Walk through it in the terminal, from where the reader left it."""
    place = load_places().get(lesson.name, Place())
    stops = sys.stdin.isatty() and sys.stdout.isatty()
    begin = place.step if stops and not arguments.restart else 0
    out = lesson_console()
    folder = Path(arguments.figures)
    stepper = Stepper(lesson, out, folder, stops=stops, done=place.done, next=_next(lesson))
    if begin:
        title = f"[bold]{lesson.number} · {escape(lesson.title)}[/]"
        out.print(f"{title}: on from step {begin + 1}; g 1 begins anew.")
    return stepper.walk(begin)


def _next(lesson: Lesson) -> str:
    """What to do after a lesson."""
    number, lines = lesson.number, []
    if any(exercise.lesson == number for exercise in EXERCISES.values()):
        lines.append(f"Try it yourself: npformer exercise list {number}")
    after = next((other for other in all_lessons() if other.number > number), None)
    if after is None:
        lines.append("That was the last one. Code that looks right, each with a bug to find: npformer bugs")
    else:
        lines.append(f"Go on: npformer lesson {after.number} ({after.title})")
    return "\n".join(lines)


def _mend_order(arguments) -> None:
    """`npformer lesson --html 5` means lesson 5, not a file called 5."""
    for option in ("notebook", "html"):
        given = getattr(arguments, option)
        if given and given.isdecimal() and arguments.which is None:
            arguments.which = given
            setattr(arguments, option, "")


def _open_last() -> Lesson:
    """The lesson that was open last; where its end was reached, the next; the first one for who begins."""
    lessons, name = all_lessons(), last_lesson()
    last = next((n for n, lesson in enumerate(lessons) if lesson.name == name), None)
    if last is None:
        return lessons[0]
    place = load_places().get(lessons[last].name, Place())
    ended = place.done and not place.begun
    return lessons[min(last + ended, len(lessons) - 1)]


def _write(
    path: Path, make: Callable[[Lesson], str], lesson: Lesson, *, how: str, keep: bool = False
) -> None:
    """Write a file and name it, and how to open it; keep: a reader may have worked in one that is there."""
    if keep and path.exists():
        raise UserError(f"{path} exists, and may hold work of yours: give another name, or remove it")
    if not path.parent.is_dir():  # before the lesson is run
        raise UserError(f"there is no folder {path.parent}: make it, or give another FILE")
    try:
        write_atomically(path, make(lesson).encode())
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror}): give another FILE") from None
    print(f"wrote {path}: {how}")
