"""The learner's folder: one file for each task, and a note of the tasks that were started and solved."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from npformer.errors import UserError
from npformer.escaping import shell_word
from npformer.language import later
from npformer.learn.tasks.registry import Task
from npformer.storage.atomic import create_atomically, reason
from npformer.storage.state_file import StateFile
from npformer.validation import has_type

NOTE = ".progress.json"
_ENTRIES = {"current": str, "solved": list[str], "hints": dict}


def find_folder(given: str) -> Path:
    """Return the folder with this name. Inside such a folder, the name means this folder."""
    path, here = Path(given), Path.cwd()
    inside = here.name == given and (here / NOTE).exists() and not path.exists()
    return Path() if inside else path


def option_for(folder: Path, usual: str) -> str:
    """Return the option by which a command finds a folder, or "" for that which it finds itself.

    Args:
        folder: The folder.
        usual: The default folder of the command.
    """
    return "" if folder == find_folder(usual) else f" --dir {shell_word(folder)}"


class Folder:
    """The folder with the learner's files. A file is written once, when its task is started.

    Attributes:
        path: The folder.
        remark: A sentence for the learner about a damaged note, or "".
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remark = ""
        self._note = StateFile(path / NOTE, _cleaned)

    def file(self, task: Task) -> Path:
        """Return the path of a task's file. The file need not exist."""
        return self.path / f"{task.stem}.py"

    def start(self, task: Task) -> Path:
        """Write the file of a task and return its path.

        A file that is there as it was given starts the task again, such as after an interrupted start.

        Raises:
            UserError: If the file exists and has other content, or cannot be written.
        """
        file, text = self.file(task), task.file_text().encode()
        self._note.read()  # refuses a note of a newer npformer before anything is written
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not (file.is_file() and file.read_bytes() == text):
                create_atomically(file, text)  # never overwrites
        except (OSError, ValueError) as error:
            if os.path.lexists(file):
                raise UserError(
                    f"{file} already exists: continue with it, or move it away to start again"
                ) from None
            raise UserError(
                f"{file} cannot be written ({reason(error)}): give another folder with --dir"
            ) from None
        self._update_note(lambda note: note | {"current": task.stem})
        return file

    def state(self, task: Task) -> str:
        """Return "solved", "started" or "not started"."""
        if not self.file(task).exists():
            return later("not started")
        is_solved = task.stem in self._note.read().get("solved", [])
        return later("solved") if is_solved else later("started")

    def current(self) -> str | None:
        """Return the stem of the task that was started or checked last, or None if its file is gone."""
        stem = self._note.read().get("current")
        return stem if stem is not None and (self.path / f"{stem}.py").exists() else None

    def set_solved(self, task: Task, solved: bool) -> None:
        """Note the result of a check."""

        def change(note: dict[str, Any]) -> dict[str, Any]:
            others = [stem for stem in note.get("solved", []) if stem != task.stem]
            return note | {"current": task.stem, "solved": [*others, task.stem] if solved else others}

        self._update_note(change)

    def next_hint(self, task: Task) -> int:
        """Return the number of hints to show now, which is one more than the last time."""
        number = min(self._note.read().get("hints", {}).get(task.stem, 0) + 1, len(task.hints))
        self._update_note(lambda note: note | {"hints": note.get("hints", {}) | {task.stem: number}})
        return number

    def _update_note(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change the note, in a new folder if there is none. Say so if it cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.remark = self._note.update(change) or self.remark
        except OSError as error:
            self.remark = f"{self._note.path} cannot be written ({reason(error)})"


def _cleaned(note: dict[str, Any]) -> dict[str, Any]:
    """Return the note without entries that are unknown or of a wrong type."""
    cleaned = {
        name: value for name, value in note.items() if name in _ENTRIES and has_type(value, _ENTRIES[name])
    }
    if "hints" in cleaned:
        cleaned["hints"] = {name: n for name, n in cleaned["hints"].items() if has_type(n, int) and n >= 0}
    return cleaned
