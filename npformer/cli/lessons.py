"""npformer lessons: list the chapters and lessons of the course, with their lengths and your progress."""

from argparse import ArgumentParser, Namespace
from itertools import groupby

from rich.table import Table
from rich.text import Text

from npformer.cli.options import Rule
from npformer.cli.output import console
from npformer.learn.console import styled
from npformer.learn.course.chapters import TITLES
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.course.progress import LessonProgress, load_progress
from npformer.learn.course.terminal import print_in_pages

RULES: tuple[Rule, ...] = ()


def add_arguments(parser: ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


def run(arguments: Namespace) -> int:
    """Print the table. Return 0."""
    lessons, places = all_lessons(), load_progress()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, side in (("", "right"), ("lesson", "left"), ("minutes", "right"), ("progress", "left")):
        table.add_column(title, justify="right" if side == "right" else "left")
    for chapter, group in groupby(lessons, key=lambda lesson: lesson.chapter):
        of_chapter = list(group)
        if len(of_chapter) > 1:
            minutes = sum(minutes_of(lesson) or 0 for lesson in of_chapter)
            table.add_row(str(chapter), TITLES[chapter], str(minutes), "", style="bold")
        for lesson in of_chapter:
            progress = progress_of(lesson, places.get(lesson.name, LessonProgress()))
            table.add_row(lesson.number, lesson.title, str(minutes_of(lesson) or ""), progress)
    print_in_pages(
        console(),
        table,
        "",
        _on(lessons, places),
        "Other commands of the course: npformer exercise (write functions), npformer bugs (find bugs),\n"
        "npformer glossary WORD (definitions), npformer index WORD (lesson and code of an equation).",
    )
    return 0


def _on(lessons: list[Lesson], places: dict[str, LessonProgress]) -> Text:
    """Return a line that says how to continue."""
    if all(places.get(lesson.name, LessonProgress()).done for lesson in lessons):
        return styled("All lessons are done.")
    number = next_of(lessons, places).number
    how = " continues the course." if places else " begins the course."
    return styled((f"npformer lesson {number}", "bold"), how)


def progress_of(lesson: Lesson, place: LessonProgress) -> str:
    """Return the progress as text: done, a step, or nothing."""
    begun = f"step {place.step + 1} of {len(lesson.steps)}" if place.begun else ""
    return f"done, now at {begun}" if place.done and begun else begun or ("done" if place.done else "")


def next_of(lessons: list[Lesson], places: dict[str, LessonProgress]) -> Lesson:
    """Return the first lesson that is begun, or else the first that is not done, or else the first one."""
    kept = {lesson: places.get(lesson.name, LessonProgress()) for lesson in lessons}
    begun = [lesson for lesson in lessons if kept[lesson].begun]
    unread = [lesson for lesson in lessons if not kept[lesson].done]
    return [*begun, *unread, *lessons][0]
