"""npformer lessons: which lessons there are, how long they take, and how far you are."""

from rich.markup import escape
from rich.table import Table

from npformer.course.library import Lesson, all_lessons
from npformer.course.places import Place, load_places
from npformer.terminal import console


def add_arguments(parser) -> None:
    """The command has none."""


def run(arguments) -> int:
    """Print the table."""
    out, lessons, places = console(), all_lessons(), load_places()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, side in (("", "right"), ("lesson", "left"), ("minutes", "right"), ("progress", "left")):
        table.add_column(title, justify="right" if side == "right" else "left")
    for lesson in lessons:
        minutes = "" if lesson.minutes is None else str(lesson.minutes)
        progress = progress_of(lesson, places.get(lesson.name, Place()))
        table.add_row(str(lesson.number), escape(lesson.title), minutes, progress)
    out.print(table)
    out.print(f"\n{_on(lessons, places)}")
    out.print(
        "Beside the lessons: npformer exercise (write it yourself), npformer bugs (find what is wrong),\n"
        "npformer glossary WORD, npformer index WORD."
    )
    return 0


def _on(lessons: list[Lesson], places: dict[str, Place]) -> str:
    """How to go on, in a line."""
    if all(places.get(lesson.name, Place()).done for lesson in lessons):
        return "All of them are done."
    number = next_of(lessons, places).number
    return f"[bold]npformer lesson {number}[/] " + ("goes on from here." if places else "is the beginning.")


def progress_of(lesson: Lesson, place: Place) -> str:
    """In words: done, a step, or nothing."""
    begun = f"step {place.step + 1} of {len(lesson.steps)}" if place.begun else ""
    return f"done, now at {begun}" if place.done and begun else begun or ("done" if place.done else "")


def next_of(lessons: list[Lesson], places: dict[str, Place]) -> Lesson:
    """The first lesson that is begun and not done, else the first that is not done, else the first."""
    kept = {lesson: places.get(lesson.name, Place()) for lesson in lessons}
    begun = [lesson for lesson in lessons if kept[lesson].begun]
    unread = [lesson for lesson in lessons if not kept[lesson].done]
    return [*begun, *unread, *lessons][0]
