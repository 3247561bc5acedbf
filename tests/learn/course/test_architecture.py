"""The map of the course: the line that opens each lesson, and the picture with the chapters of the parts."""

import re

from course import CHAPTERS, LESSONS, each_lesson

from npformer.learn.course.architecture import (
    chains,
    chapters_of_parts,
    place_of,
    places,
)
from npformer.learn.figures.course_map import course_map
from npformer.learn.figures.f01_to_f04_architecture import PARTS
from npformer.plots import text_problems


@each_lesson
def test_the_line_of_a_lesson_is_that_of_the_map(lesson):
    """If this fails, copy the line of the map into the opening of the lesson, or change PLACES."""
    paragraphs = lesson.cells[0].text.split("\n\n")
    assert f"`{place_of(lesson.name).line}`" in paragraphs
    assert paragraphs[-1].startswith("`")


def test_every_place_is_that_of_a_lesson_or_a_chapter_and_names_parts_that_exist():
    known = {lesson.number for lesson in LESSONS} | {str(chapter) for chapter in CHAPTERS}
    assert places().keys() <= known
    assert {int(number.split(".")[0]) for number in places()} == CHAPTERS.keys()
    for place in places().values():
        assert len(place.line) <= 80, "it fits a narrow terminal"
        assert set(place.parts) <= set(chains()[place.chain])
        assert set(place.highlighted) <= set(PARTS)


def test_the_picture_has_the_chapter_of_every_part():
    found = chapters_of_parts()
    assert found["attention"] == "4–7"
    assert found["embedding"] == "2"
    figure = course_map()
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    drawn = {text: texts.count(text) for text in texts if re.fullmatch(r"\d+(–\d+)?", text)}
    two = {"2": 2, "3": 2, "4–7": 3, "8": 5, "9": 2, "12": 2}
    assert drawn == {number: two.get(number, 1) for number in found.values()}
    assert text_problems(figure) == []
