"""The documents of the lessons: each is run once, and has its outputs, figures and exercises."""

import re
from collections.abc import Sequence
from functools import partial

from npformer.language import speaking
from npformer.learn.course.export import map_of, run_without_error
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.routes import place_on_routes
from npformer.learn.site.lesson_links import document_of, linker
from npformer.learn.site.markdown import Files, page, picture

# lessons with these names in their code share a trained model: they are run in one process, in this order
SHARED_RUN = re.compile(r"course\.trained import .*\b(?:trained|FOLDER)\b")


def lesson_pages(lessons: Sequence[Lesson], *, has_explorer: bool) -> Files:
    """Run lessons one after the other, and return their documents and pictures.

    Args:
        lessons: The lessons.
        has_explorer: Whether the site has the page of the explorer.

    Raises:
        UserError: If a cell fails.
    """
    files = Files()
    for lesson in lessons:
        with speaking(lesson.language):
            files[f"{document_of(lesson)}.md"] = page(
                "lesson",
                lesson=lesson,
                cells=run_without_error(lesson, "page"),
                place=place_on_routes(lesson),
                map=map_of(lesson),
                link=linker(lesson),
                picture=partial(picture, files),
                has_explorer=has_explorer,
            )
    return files


def shares_a_run(lesson: Lesson) -> bool:
    """Return whether a lesson trains or reads the translator that several lessons share."""
    return any(SHARED_RUN.search(cell.text) for cell in lesson.cells if cell.kind == "code")
