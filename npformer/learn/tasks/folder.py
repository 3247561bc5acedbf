"""The learner's folder: one file for each task, and a note of the tasks that were started and solved."""

import json
from pathlib import Path
from typing import Any

from npformer.errors import UserError
from npformer.learn.tasks.registry import Task
from npformer.storage.atomic import write_atomically

NOTE = ".progress.json"


class Folder:
    """The folder with the learner's files. A file is written once, when its task is started."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, task: Task) -> Path:
        """Return the path of a task's file. The file need not exist."""
        return self.path / f"{task.stem}.py"

    def start(self, task: Task) -> Path:
        """Write the file of a task and return its path.

        Raises:
            UserError: If the file exists or cannot be written.
        """
        file = self.file(task)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with open(file, "x", encoding="utf-8") as out:  # "x" never overwrites
                out.write(task.file_text())
        except OSError as error:
            if file.exists():
                raise UserError(
                    f"{file} is there already: go on with it, or move it away to start anew"
                ) from None
            why = error.strerror or "no such place"
            raise UserError(f"{file} cannot be written ({why}): give another folder with --dir") from None
        self._update_note(current=task.stem)
        return file

    def state(self, task: Task) -> str:
        """Return "solved", "started" or "not started"."""
        if not self.file(task).exists():
            return "not started"
        return "solved" if task.stem in self._read_note().get("solved", []) else "started"

    def current(self) -> str | None:
        """Return the stem of the task that was started or checked last, or None if its file is gone."""
        stem = self._read_note().get("current")
        return stem if stem is not None and (self.path / f"{stem}.py").exists() else None

    def set_solved(self, task: Task, solved: bool) -> None:
        """Note the result of a check."""
        others = [stem for stem in self._read_note().get("solved", []) if stem != task.stem]
        self._update_note(current=task.stem, solved=[*others, task.stem] if solved else others)

    def next_hint(self, task: Task) -> int:
        """Return the number of hints to show now, which is one more than the last time."""
        hints = self._read_note().get("hints", {})
        number = min(hints.get(task.stem, 0) + 1, len(task.hints))
        if self.path.is_dir():
            self._update_note(hints=hints | {task.stem: number})
        return number

    def _read_note(self) -> dict[str, Any]:
        """Return the note. A missing or damaged one counts as empty."""
        try:
            note = json.loads((self.path / NOTE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(note, dict):
            return {}
        types = {"current": str, "solved": list, "hints": dict}
        return {key: value for key, value in note.items() if isinstance(value, types.get(key, ()))}

    def _update_note(self, **changes: Any) -> None:
        """Write the note with some changes. Do nothing if the folder cannot be written to."""
        try:
            note = json.dumps(self._read_note() | changes, indent=1)
            write_atomically(self.path / NOTE, note.encode())
        except OSError:
            return
