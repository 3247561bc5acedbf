"""The lessons of the course, which are parsed once for all tests of their texts."""

import pytest

from npformer.learn.course.lesson import all_lessons

LESSONS = all_lessons()
CHAPTERS = {
    chapter: [lesson for lesson in LESSONS if lesson.chapter == chapter]
    for chapter in sorted({lesson.chapter for lesson in LESSONS})
}
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
each_chapter = pytest.mark.parametrize("lessons", CHAPTERS.values(), ids=lambda found: f"{found[0].chapter}")


def texts_of(lessons, kind):
    """Return the texts of the cells of some lessons, of prose or of code."""
    return [cell.text for lesson in lessons for cell in lesson.cells if cell.kind == kind]


def prose_of(*lessons):
    """Return the prose of some lessons as one text."""
    return "\n\n".join(texts_of(lessons, "prose"))
