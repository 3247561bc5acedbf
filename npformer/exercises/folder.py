"""The learner's folder: one file a task, and a small note of what was started and solved."""

import json
from pathlib import Path
from typing import Protocol

from npformer.atomic import write_atomically
from npformer.errors import UserError

NOTE = ".progress.json"


class Task(Protocol):
    """What a learner starts and solves: an exercise, or a bug of the zoo."""

    @property
    def stem(self) -> str:
        """The learner's file has this name, and .py; the note knows the task by it."""

    @property
    def hints(self) -> tuple[str, ...]:
        """From the first to the last."""

    def file_text(self) -> str:
        """The learner's file, as it is written when the task is started."""


class Folder:
    """Where the learner's files are. It writes a file once, when a task is started, and never again."""

    def __init__(self, path: Path):
        self.path = path

    def file(self, task: Task) -> Path:
        """The learner's file of a task, there or not."""
        return self.path / f"{task.stem}.py"

    def start(self, task: Task) -> Path:
        """Write the stub. Errors: UserError where the file is there already, or cannot be written."""
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
        self.note(current=task.stem)
        return file

    def state(self, task: Task) -> str:
        """ "solved", "started" or "not started"."""
        if not self.file(task).exists():
            return "not started"
        return "solved" if task.stem in self.read().get("solved", []) else "started"

    def current(self) -> str | None:
        """The stem of the task started or checked last, if its file is still there."""
        name = self.read().get("current")
        return name if isinstance(name, str) and (self.path / f"{name}.py").exists() else None

    def set_solved(self, task: Task, solved: bool) -> None:
        """Keep how a check ended."""
        others = [name for name in self.read().get("solved", []) if name != task.stem]
        self.note(current=task.stem, solved=[*others, task.stem] if solved else others)

    def next_hint(self, task: Task) -> int:
        """How many hints to show now: one more than the last time."""
        hints = self.read().get("hints", {})
        number = min(hints.get(task.stem, 0) + 1, len(task.hints))
        if self.path.is_dir():
            self.note(hints=hints | {task.stem: number})
        return number

    def read(self) -> dict:
        """The note; an empty one where there is none, or where it is spoilt."""
        try:
            note = json.loads((self.path / NOTE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        kinds = {"current": str, "solved": list, "hints": dict}
        return (
            {k: v for k, v in note.items() if isinstance(v, kinds.get(k, ()))}
            if isinstance(note, dict)
            else {}
        )

    def note(self, **changes) -> None:
        """Write the note anew; a folder that cannot be written to has none."""
        try:
            write_atomically(self.path / NOTE, json.dumps(self.read() | changes, indent=1).encode())
        except OSError:
            return
