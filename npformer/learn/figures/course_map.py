"""The map of the course: figure F01 with the number of the chapter beside each part."""

from collections.abc import Sequence

from npformer.learn.course.architecture import chapters_of_parts
from npformer.learn.figures.f01_to_f04_architecture import architecture_with_numbers
from npformer.plots import Figure


def course_map(highlight: Sequence[str] = ()) -> Figure:
    """Draw the architecture with the number of the chapter beside each part.

    Args:
        highlight: The parts that are highlighted, as in `LessonPlace.highlighted`.
    """
    numbers = {"inputs" if part == "ids" else part: number for part, number in chapters_of_parts().items()}
    return architecture_with_numbers(numbers, highlight=highlight)
