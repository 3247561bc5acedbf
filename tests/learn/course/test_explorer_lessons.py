"""The lessons that the explorer names for each of its steps are lessons of the course."""

import pytest

from npformer.explorer.code_lines import STEP_LINES, VARIANTS
from npformer.learn.course.lesson import all_lessons

ALL = [(key, each) for steps in (STEP_LINES, *VARIANTS.values()) for key, each in steps.items()]


@pytest.mark.parametrize(("key", "step"), ALL, ids=[key for key, _ in ALL])
def test_the_lesson_of_a_step_exists(key, step):
    assert {step.lesson, step.backward_lesson} <= {lesson.path.name for lesson in all_lessons()}
