"""The learner's progress in each lesson: a JSON file in the user's state folder."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from npformer.storage.atomic import write_atomically


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
    """Return $XDG_STATE_HOME/npformer/lessons.json. The default of the variable is ~/.local/state."""
    state_home = os.environ.get("XDG_STATE_HOME", "")
    # the specification says to ignore a relative path
    folder = (
        Path(state_home) if os.path.isabs(state_home) else Path(os.path.expanduser("~")) / ".local" / "state"
    )
    return folder / "npformer" / "lessons.json"


def load_progress() -> dict[str, LessonProgress]:
    """Return the progress in each lesson by name. A missing or damaged file counts as empty."""
    progress = {}
    for name, values in _read().get("lessons", {}).items():
        with contextlib.suppress(TypeError, ValueError):
            read = LessonProgress(**values)
            if type(read.step) is type(read.steps) is int and 0 <= read.step <= read.steps:
                progress[name] = LessonProgress(read.step, read.steps, bool(read.done))
    return progress


def last_lesson() -> str | None:
    """Return the name of the lesson that was open last."""
    last = _read().get("last")
    return last if isinstance(last, str) else None


def save_progress(name: str, progress: LessonProgress) -> str:
    """Save the progress in a lesson. Return "", or the reason why it cannot be saved."""
    lessons = load_progress() | {name: progress}
    state = {"version": 1, "last": name, "lessons": {key: asdict(value) for key, value in lessons.items()}}
    path = state_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(state, indent=1) + "\n").encode())
    except OSError as error:
        return f"your progress cannot be saved in {path} ({error.strerror})"
    return ""


def _read() -> dict[str, Any]:
    try:
        state = json.loads(state_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):  # ValueError: not JSON or not UTF-8
        return {}
    if not isinstance(state, dict) or not isinstance(state.get("lessons", {}), dict):
        return {}
    return state
