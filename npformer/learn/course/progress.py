"""The learner's progress in each lesson: a JSON file in the user's state folder."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from npformer.errors import UserError
from npformer.learn.course.chapters import NEW_NAMES, SPLIT_LESSONS
from npformer.learn.course.lesson import all_lessons
from npformer.storage.atomic import reason
from npformer.storage.places import user_folder
from npformer.storage.state_file import StateFile
from npformer.validation import has_type


@dataclass(frozen=True)
class LessonProgress:
    """The progress in one lesson.

    Args:
        step: The index of the step to go on with.
        steps: The number of steps that the lesson had then.
        done: True if the reader has reached the end before.
    """

    step: int = 0
    steps: int = 0
    done: bool = False

    @property
    def begun(self) -> bool:
        """True if the reader is somewhere between the first step and the end."""
        return 0 < self.step < self.steps


def state_file() -> Path:
    """Return $XDG_STATE_HOME/npformer/lessons.json. The default of the variable is ~/.local/state.

    The path is relative, and not to be used, if there is no home folder.
    """
    return user_folder("XDG_STATE_HOME", "~/.local/state") / "lessons.json"


def load_progress() -> dict[str, LessonProgress]:
    """Return the progress in each lesson by name. A missing or damaged entry counts as no progress.

    Entries of lessons that were split since then count for the lessons that they became.

    Raises:
        UserError: If a newer npformer wrote the file.
    """
    saved = {name: LessonProgress(**values) for name, values in _read().get("lessons", {}).items()}
    old = _split_lessons()
    progress = {name: place for name, place in saved.items() if name not in old}
    for name in saved.keys() & old.keys():
        for part, place in _split(saved[name], old[name]).items():
            kept = progress.get(part, place)
            progress[part] = replace(kept, done=kept.done or place.done)
    return progress


def last_lesson() -> str | None:
    """Return the name of the lesson that was open last.

    If it was split, this is the part that was open, or the last part if the reader had reached the end.
    """
    content = _read()
    last: str | None = content.get("last")
    parts = _split_lessons().get(last or "")
    if not parts:
        return last
    place = LessonProgress(**content.get("lessons", {}).get(last, {}))
    return parts[-1] if place.done and not place.begun else parts[_part_of(place, parts)]


def _split_lessons() -> dict[str, tuple[str, ...]]:
    """Return the names of lessons that were split, each with the names of the lessons that it became."""
    lessons = all_lessons()
    became: dict[str, tuple[str, ...]] = {**NEW_NAMES}
    for old in SPLIT_LESSONS:
        became[old] = tuple(lesson.name for lesson in lessons if lesson.chapter == int(old[:2]))
    existing = {lesson.name for lesson in lessons}
    return {old: parts for old, parts in became.items() if old not in existing}


def _part_of(place: LessonProgress, parts: tuple[str, ...]) -> int:
    """Return the index of the part that contains a step, if the parts had equally many steps."""
    return len(parts) * place.step // place.steps if place.begun else 0


def _split(place: LessonProgress, parts: tuple[str, ...]) -> dict[str, LessonProgress]:
    """Return the progress in the parts of a lesson: those before the part that was open are done."""
    if len(parts) == 1:
        return {parts[0]: place}
    read = len(parts) if place.done else _part_of(place, parts)
    return {part: LessonProgress(done=True) for part in parts[:read]}


def _read() -> dict[str, Any]:
    """Return the content of the file, or nothing if there is no home folder."""
    return _state().read() if state_file().is_absolute() else {}


class Saved(NamedTuple):
    """The result of saving: whether the progress is saved, and a note for the reader, or ""."""

    done: bool
    note: str


def save_progress(name: str, progress: LessonProgress) -> Saved:
    """Save the progress in a lesson."""
    path = state_file()
    if not path.is_absolute():
        return Saved(
            False, "your progress cannot be saved: there is no home folder, so set HOME or XDG_STATE_HOME"
        )

    def change(_: dict[str, Any]) -> dict[str, Any]:
        lessons = load_progress() | {name: progress}
        return {"last": name, "lessons": {key: asdict(value) for key, value in lessons.items()}}

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Saved(True, _state().update(change))
    except OSError as error:
        return Saved(False, f"your progress cannot be saved in {path} ({reason(error)})")
    except UserError as error:
        return Saved(False, f"your progress cannot be saved: {error}")


def _state() -> StateFile:
    return StateFile(state_file(), _cleaned, key="version")


def _cleaned(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the file without wrong entries."""
    cleaned: dict[str, Any] = {}
    if isinstance(content.get("last"), str):
        cleaned["last"] = content["last"]
    lessons = content.get("lessons")
    if isinstance(lessons, dict):
        cleaned["lessons"] = {name: values for name, values in lessons.items() if _is_progress(values)}
    return cleaned


def _is_progress(values: Any) -> bool:
    """Return whether a value is the JSON object of a LessonProgress."""
    hints = get_type_hints(LessonProgress)
    if not isinstance(values, dict) or not values.keys() <= hints.keys():
        return False
    if not all(has_type(value, hints[name]) for name, value in values.items()):
        return False
    progress = LessonProgress(**values)
    return 0 <= progress.step <= progress.steps
