"""A screen at a time: nothing scrolls out of sight before a key was pressed."""

import contextlib
import io
import re
import sys
import textwrap
from collections.abc import Callable
from typing import IO

from rich.cells import cell_len
from rich.console import Console, RenderableType

LEAST = 5  # lines that are worth beginning a text for
MORE = "Enter: more · b back · q quit · ? help ▸ "


class Screen:
    """Lines go out until the terminal's height is reached; then it asks, and `answer` says what to do.

    answer(line) -> "" for nothing more than another question, "on", or a command that ends the step.
    """

    def __init__(self, out: Console, answer: Callable[[str], str], *, stops: bool, more: str = MORE):
        self.more = more
        self.out = out
        self.answer = answer
        self.stops = stops
        self.used = 0  # lines since the last question
        if stops:
            with contextlib.suppress(ImportError):  # arrows and history on the line, where there is readline
                import readline  # noqa: F401 - to import it is to have it

    @property
    def room(self) -> int:
        """Lines that still fit, the question's own left out."""
        return self.out.size.height - 2 - self.used

    def put(self, lines: list[str], where: str = "") -> str:
        """Print lines, in pages where they do not fit. Returns "on", or the command that ended it."""
        while self.stops and len(lines) > self.room:
            cut = self._cut(lines)
            self.write(lines[:cut])
            lines = lines[cut:]
            while lines and not lines[0]:
                lines = lines[1:]
            command = self.ask(f"{where} {self.more}")
            if command != "on":
                return command
        self.write(lines)
        return "on"

    def keep(self, lines: list[str], where: str = "") -> str:
        """The same, for what should not be cut in two where a screen can hold it."""
        if self.stops and self.room < len(lines) <= self.out.size.height - 2:
            command = self.ask(f"{where} {self.more}")
            if command != "on":
                return command
        return self.put(lines, where)

    def _cut(self, lines: list[str]) -> int:
        """How many lines go on this page: up to an empty one, if there is one in its lower part."""
        if self.room < LEAST:
            return 0
        for cut in range(self.room, max(self.room // 3, LEAST - 1), -1):
            if not lines[cut].strip():
                return cut
        return self.room

    def write(self, lines: list[str]) -> None:
        """Print lines as they are."""
        for line in lines:
            print(line, file=self.out.file)
        self.used += len(lines)

    def ask(self, question: str) -> str:
        """Ask until the answer is "on" or a command; without a terminal it is "on" at once."""
        if not self.stops:
            return "on"
        if len(question) > self.out.width:  # one line is kept for it: what else there is, ? tells
            question = re.sub(r" · .* · \? help", " · ? help", question)
        while True:
            self.out.file.flush()
            try:
                line = input(question.strip() + " ")
            except (EOFError, KeyboardInterrupt):
                print(file=self.out.file)
                return "quit"
            self.used = 0
            command = self.answer(line.strip())
            if command:
                return command


class Folded(io.TextIOBase):
    """A stream that passes lines on; those longer than a terminal's are broken between words, and counted."""

    def __init__(self, on: IO[str], width: int):
        self.on = on
        self.width = width
        self.lines = 0
        self.begun = ""  # a line that has not ended yet

    def write(self, text: str) -> int:
        *whole, self.begun = (self.begun + text).split("\n")
        for line in whole:
            self._pass(line)
        return len(text)

    def end(self) -> None:
        """Pass on what was begun and has no end."""
        if self.begun:
            self._pass(self.begun)
            self.begun = ""

    def _pass(self, line: str) -> None:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        parts = [line]
        if cell_len(line) > self.width:
            parts = textwrap.wrap(
                line, self.width, subsequent_indent=indent, replace_whitespace=False, break_on_hyphens=False
            )
        self.lines += len(parts)
        self.on.write("\n".join(parts) + "\n")
        self.on.flush()


def print_in_pages(out: Console, *things: RenderableType) -> None:
    """Print to standard output; in a terminal that is too low for all of it, a screen at a time."""
    with out.capture() as capture:
        for thing in things:
            out.print(thing)
    lines = capture.get().rstrip("\n").split("\n")
    stops = sys.stdin.isatty() and sys.stdout.isatty()
    # whatever is typed but Enter ends it: what is wanted then is the shell
    Screen(out, lambda line: "quit" if line else "on", stops=stops, more="Enter: more · q quit ▸ ").put(lines)
