"""Find headings of lessons and definitions in the code by name, so that no table needs line numbers."""

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from npformer.errors import UserError
from npformer.language import phrase, say
from npformer.learn.course.lesson import all_lessons

PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class SourceLocation:
    """A line of a file.

    Args:
        name: The name of the heading or definition, such as "lesson 5.1, All words at once" or
            "attention_backward".
        path: The file.
        line: The number of the line.
    """

    name: str
    path: Path
    line: int

    @property
    def address(self) -> str:
        """The file and the line as editors take them, such as npformer/training/optimizer.py:44."""
        return f"{self.shown}:{self.line}"

    @property
    def shown(self) -> str:
        """The path of the file relative to the folder that holds npformer/ and lessons/."""
        if self.path.is_relative_to(PACKAGE) and self.path.parent.name != "lessons":
            return self.path.relative_to(PACKAGE.parent).as_posix()
        return f"lessons/{self.path.name}"

    @property
    def home(self) -> Path:
        """The folder that `shown` is relative to."""
        return self.path.parents[len(Path(self.shown).parts) - 1]

    def link(self, folder: Path, text: str) -> str:
        """Return a Markdown link for a file in the given folder."""
        path = Path(os.path.relpath(self.path, folder)).as_posix()
        return f"[{text}]({quote(os.fsencode(path))}#L{self.line})"


def lesson_location(reference: str) -> SourceLocation:
    """Return the location of a lesson or of its first heading that begins with a text.

    Args:
        reference: The number of a lesson ("5.2") or of a chapter ("5"), and possibly a text ("5 All words").
            A chapter stands for its first lesson or, with a text, for the first one with such a heading.

    Raises:
        UserError: If there is no such lesson or heading.
    """
    number, _, heading = reference.partition(" ")
    lessons = [lesson for lesson in all_lessons() if number in (lesson.number, str(lesson.chapter))]
    if not lessons:
        raise UserError(f"the index names lesson {number}, but there is no such lesson")
    for lesson in lessons:
        for line, text in enumerate(_lines(lesson.path), 1):
            found = re.match(r"# #+ (?:[\d.]+ · )?(.*)", text)  # a title or another heading
            if found and (not heading or found[1].startswith(heading)):
                shown = phrase(found[1], f"lessons/{lesson.name}") if heading else lesson.title
                name = say("lesson {number}, {heading}", number=lesson.number, heading=shown)
                return SourceLocation(name, lesson.path, line)
    raise UserError(f"the index names {heading!r} in lesson {number}, but no heading begins with it")


def code_location(reference: str) -> SourceLocation:
    """Return the location of a function or class, such as "functional/softmax.softmax_backward".

    Raises:
        UserError: If there is no such file or name.
    """
    file, _, name = reference.partition(".")
    path = PACKAGE / f"{file}.py"
    if not path.exists():
        raise UserError(f"the index names npformer/{file}.py, but there is no such file")
    for line, text in enumerate(_lines(path), 1):
        if re.match(rf"(def|class) {name}\b", text):
            return SourceLocation(name, path, line)
    raise UserError(f"the index names {name} in npformer/{file}.py, but that file has no such def or class")


@lru_cache(maxsize=64)
def _lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").splitlines())


def items(cell: str) -> list[str]:
    """Return the items of a cell of a table, which are separated by semicolons."""
    return [item.strip() for item in cell.split(";") if item.strip()]
