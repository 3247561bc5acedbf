"""The course: lessons in percent format, run step by step in the terminal or exported."""

from npformer.learn.course.pictures import show_figure

__all__ = ["show_figure"]
