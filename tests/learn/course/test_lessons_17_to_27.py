"""The lessons of chapters 17 to 27."""

from every_lesson import EveryLesson


class TestLessons(EveryLesson):
    chapters = range(17, 28)
