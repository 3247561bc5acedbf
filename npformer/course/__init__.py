"""The course: lessons in percent format, and what steps, runs and publishes them."""

from npformer.course.pictures import show_figure

__all__ = ["show_figure"]
