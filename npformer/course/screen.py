"""The screen of a lesson: nothing scrolls out of sight before a key was pressed."""

import contextlib
from collections.abc import Callable

from rich.console import Console

LEAST = 5  # lines that are worth beginning a text for


class Screen:
    """Lines go out until the terminal's height is reached; then it asks, and `answer` says what to do.

    answer(line) -> "" for nothing more than another question, "on", or a command that ends the step.
    """

    def __init__(self, out: Console, answer: Callable[[str], str], *, stops: bool):
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
            command = self.ask(f"{where} Enter: more · b back · q quit · ? help ▸ ")
            if command != "on":
                return command
        self.write(lines)
        return "on"

    def keep(self, lines: list[str], where: str = "") -> str:
        """The same, for what should not be cut in two where a screen can hold it."""
        if self.stops and self.room < len(lines) <= self.out.size.height - 2:
            command = self.ask(f"{where} Enter: more · b back · q quit · ? help ▸ ")
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

    def count(self, printed: str) -> None:
        """Count what someone else printed."""
        width = max(self.out.width, 1)
        self.used += sum(1 + max(len(line) - 1, 0) // width for line in printed.splitlines())

    def ask(self, question: str) -> str:
        """Ask until the answer is "on" or a command; without a terminal it is "on" at once."""
        if not self.stops:
            return "on"
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
