"""The lessons of chapters 13 to 16."""

from every_lesson import EveryLesson


class TestLessons(EveryLesson):
    chapters = range(13, 17)
