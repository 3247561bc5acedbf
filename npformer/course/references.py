"""References to a place in a lesson or in the code, found anew each time: no line number goes stale."""

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from npformer.course.library import all_lessons
from npformer.errors import UserError

PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Place:
    """A line of a file, and what to call it."""

    name: str  # "lesson 5, All words at once", or "attention_backward"
    path: Path
    line: int

    @property
    def address(self) -> str:
        """The file and the line, as editors and terminals take them: npformer/optim.py:44."""
        return f"{self.shown}:{self.line}"

    @property
    def shown(self) -> str:
        """The file as seen from the folder that holds npformer/ and lessons/."""
        if self.path.is_relative_to(PACKAGE) and self.path.parent.name != "lessons":
            return self.path.relative_to(PACKAGE.parent).as_posix()
        return f"lessons/{self.path.name}"

    @property
    def home(self) -> Path:
        """The folder from which it is seen so."""
        return self.path.parents[len(Path(self.shown).parts) - 1]

    def link(self, folder: Path, text: str) -> str:
        """A link in Markdown, from a file in that folder."""
        path = Path(os.path.relpath(self.path, folder)).as_posix()
        return f"[{text}]({path}#L{self.line})"


def lesson_place(reference: str) -> Place:
    """The place of "5" (a lesson's title) or "5 All words" (its first heading that begins so).

    Errors: UserError where there is no such lesson or heading.
    """
    number, _, heading = reference.partition(" ")
    lesson = next((lesson for lesson in all_lessons() if str(lesson.number) == number), None)
    if lesson is None:
        raise UserError(f"the index speaks of lesson {number}, and there is none")
    for line, text in enumerate(_lines(lesson.path), 1):
        found = re.match(r"# #+ (.*)", text)
        if found and (not heading or found[1].startswith(heading)):
            name = f"lesson {number}" + (f", {found[1]}" if heading else f", {lesson.title}")
            return Place(name, lesson.path, line)
    raise UserError(f"the index speaks of {heading!r} in lesson {number}, and no heading begins so")


def code_place(reference: str) -> Place:
    """The place of "functional/softmax.softmax_backward": a def or a class of that file.

    Errors: UserError where there is no such file or name.
    """
    file, _, name = reference.partition(".")
    path = PACKAGE / f"{file}.py"
    if not path.exists():
        raise UserError(f"the index speaks of npformer/{file}.py, and there is no such file")
    for line, text in enumerate(_lines(path), 1):
        if re.match(rf"(def|class) {name}\b", text):
            return Place(name, path, line)
    raise UserError(f"the index speaks of {name} in npformer/{file}.py, and it has no such def or class")


@lru_cache(maxsize=64)
def _lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").splitlines())
