"""An assignment: the chosen exercises, their points, the seed of the hidden trials and the limits."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from npformer.errors import UserError
from npformer.language import ENGLISH, current_language, language_named
from npformer.learn.exercises import EXERCISES, Exercise
from npformer.learn.tasks.process import MEMORY, SECONDS
from npformer.storage.json_files import require_entries, require_object

POINTS = 10.0  # of an exercise
_ENTRIES = {
    "exercises": list[str],
    "points": float,
    "seed": int | None,
    "seconds": float,
    "memory": int,
    "language": str,
}


@dataclass(frozen=True)
class Assignment:
    """The settings of an assignment.

    Args:
        exercises: The names of the exercises, in the order of the course.
        points: The points of each exercise. A solution has all of them or none.
        seed: The seed of the inputs of the hidden trials, or None for the public trials alone.
        seconds: The limit on the processor time of an exercise.
        memory: The limit on the memory of an exercise, in bytes.
        language: The language of the sentences about solutions; by default the current one.
    """

    exercises: tuple[str, ...]
    points: float = POINTS
    seed: int | None = None
    seconds: float = SECONDS
    memory: int = MEMORY
    language: str = field(default_factory=current_language)

    def task(self, name: str) -> Exercise:
        """Return an exercise with its public trials and, if there is a seed, the hidden ones."""
        exercise = EXERCISES.find(name)
        return exercise if self.seed is None else exercise.with_hidden_trials(self.seed)

    def as_settings(self) -> dict[str, Any]:
        """Return the settings as a JSON object has them."""
        return asdict(self) | {"exercises": list(self.exercises)}


def random_seed() -> int:
    """Return a seed for hidden trials that nobody can guess."""
    return secrets.randbelow(2**31)


def chosen_exercises(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the chosen exercises, each once and in the order of the course; all for no names.

    Args:
        names: Names of exercises, or numbers of chapters, which stand for all exercises of the chapter.

    Raises:
        UserError: If there is no such exercise or chapter.
    """
    chosen: set[str] = set()
    for name in names:
        of_chapter = {exercise.name for exercise in EXERCISES if str(exercise.chapter) == name}
        if name.isdecimal() and not of_chapter:
            raise UserError(f"chapter {name} has no exercises: npformer exercise list prints all of them")
        chosen |= of_chapter or {EXERCISES.find(name).name}
    return tuple(each.name for each in EXERCISES if each.name in chosen or not names)


def assignment_from(content: Any, what: str) -> Assignment:
    """Return the assignment of a JSON object, which `Assignment.as_settings` wrote.

    Args:
        content: The object.
        what: The noun for the file, for messages.

    Raises:
        UserError: If entries are missing or of a wrong type, or an exercise is unknown.
    """
    advice = "export the assignment again"
    settings = {"language": ENGLISH} | require_object(content, what, advice)  # earlier versions had English
    require_entries(settings, _ENTRIES, what, advice)
    values = {name: settings[name] for name in _ENTRIES}
    language = language_named(settings["language"])
    return Assignment(**values | {"exercises": chosen_exercises(settings["exercises"]), "language": language})
