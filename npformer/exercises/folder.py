"""The learner's folder: one file an exercise, and a small note of what was started and solved."""

import json
from pathlib import Path

from npformer.atomic import write_atomically
from npformer.errors import UserError
from npformer.exercises.exercise import Exercise

NOTE = ".progress.json"


class Folder:
    """Where the learner's files are. It writes a file once, when an exercise is started, and never again."""

    def __init__(self, path: Path):
        self.path = path

    def file(self, exercise: Exercise) -> Path:
        """The learner's file of an exercise, there or not."""
        return self.path / f"{exercise.name}.py"

    def start(self, exercise: Exercise) -> Path:
        """Write the stub. Errors: UserError where the file is there already, or cannot be written."""
        file = self.file(exercise)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with open(file, "x", encoding="utf-8") as out:  # "x" never overwrites
                out.write(exercise.file_text())
        except OSError as error:
            if file.exists():
                raise UserError(
                    f"{file} is there already: go on with it, or move it away to start anew"
                ) from None
            why = error.strerror or "no such place"
            raise UserError(f"{file} cannot be written ({why}): give another folder with --dir") from None
        self.note(current=exercise.name)
        return file

    def state(self, exercise: Exercise) -> str:
        """ "solved", "started" or "not started"."""
        if not self.file(exercise).exists():
            return "not started"
        return "solved" if exercise.name in self.read().get("solved", []) else "started"

    def current(self) -> str | None:
        """The name of the exercise started or checked last, if its file is still there."""
        name = self.read().get("current")
        return name if isinstance(name, str) and (self.path / f"{name}.py").exists() else None

    def set_solved(self, exercise: Exercise, solved: bool) -> None:
        """Keep how a check ended."""
        others = [name for name in self.read().get("solved", []) if name != exercise.name]
        self.note(current=exercise.name, solved=[*others, exercise.name] if solved else others)

    def next_hint(self, exercise: Exercise) -> int:
        """How many hints to show now: one more than the last time."""
        hints = self.read().get("hints", {})
        number = min(hints.get(exercise.name, 0) + 1, len(exercise.hints))
        if self.path.is_dir():
            self.note(hints=hints | {exercise.name: number})
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
