"""The lessons of chapters 0 to 12."""

from every_lesson import EveryLesson


class TestLessons(EveryLesson):
    chapters = range(13)
    scripts = ("5.1",)
