"""Exercises, graded by comparing the results of the learner's functions with those of the package."""

from collections.abc import Iterator
from pathlib import Path

from npformer.escaping import printable
from npformer.language import later, say
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.grade import grade, judge
from npformer.learn.exercises.observe import observe
from npformer.learn.exercises.topics import ALL
from npformer.learn.tasks.registry import TaskRegistry
from npformer.learn.tasks.verdict import Verdict

__all__ = ["EXERCISES", "Exercise", "Verdict", "grade"]


def _introduce(exercise: Exercise, file: Path) -> Iterator[str]:
    """Yield the lines to print when the exercise has been started."""
    yield say(
        "Wrote {file}: {title} (chapter {chapter}).",
        file=printable(file),
        title=exercise.title,
        chapter=exercise.chapter,
    )
    yield say(
        "Open it in an editor and complete {functions}.", functions=say(" and ").join(exercise.functions)
    )


EXERCISES = TaskRegistry[Exercise](
    "exercise",
    command="npformer exercise",
    folder="exercises",
    source="npformer.learn.exercises:EXERCISES",
    columns=(later("chapter"), later("name"), later("title")),
    observe=observe,
    judge=judge,
    introduce=_introduce,
)
for _exercise in ALL:
    EXERCISES.register(_exercise.name, _exercise)
