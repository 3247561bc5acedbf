"""Where a learner is in each lesson: a small JSON file in the user's state folder."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from npformer.atomic import write_atomically


@dataclass(frozen=True)
class Place:
    """A step of a lesson, how many it had then, and whether its end was ever reached."""

    step: int = 0
    steps: int = 0
    done: bool = False

    @property
    def begun(self) -> bool:
        """Whether some of it was read and not all."""
        return 0 < self.step < self.steps


def state_file() -> Path:
    """$XDG_STATE_HOME/npformer/lessons.json, in ~/.local/state where that is not set."""
    given = os.environ.get("XDG_STATE_HOME", "")
    # the specification: a relative path is to be ignored
    folder = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~")) / ".local" / "state"
    return folder / "npformer" / "lessons.json"


def load_places() -> dict[str, Place]:
    """The place in each lesson by name. A file that is missing or damaged is an empty one."""
    places = {}
    for name, values in _read().get("lessons", {}).items():
        with contextlib.suppress(TypeError, ValueError):
            place = Place(**values)
            if type(place.step) is type(place.steps) is int and 0 <= place.step <= place.steps:
                places[name] = Place(place.step, place.steps, bool(place.done))
    return places


def last_lesson() -> str | None:
    """The name of the lesson that was open last."""
    last = _read().get("last")
    return last if isinstance(last, str) else None


def save_place(name: str, place: Place) -> str:
    """Keep the place in a lesson. Returns "" or why it cannot be kept: a lesson goes on without."""
    places = load_places() | {name: place}
    state = {"version": 1, "last": name, "lessons": {key: asdict(value) for key, value in places.items()}}
    path = state_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(state, indent=1) + "\n").encode())
    except OSError as error:
        return f"your place cannot be kept in {path} ({error.strerror})"
    return ""


def _read() -> dict[str, Any]:
    try:
        state = json.loads(state_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):  # also where it is no JSON, or no UTF-8
        return {}
    if not isinstance(state, dict) or not isinstance(state.get("lessons", {}), dict):
        return {}
    return state
