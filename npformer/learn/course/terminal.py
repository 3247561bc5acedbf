"""Show lessons in the terminal: Markdown and code as coloured lines, one screen at a time."""

import contextlib
import io
import re
import sys
import textwrap
from collections.abc import Callable
from typing import IO

from pygments.token import Token
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme

from npformer.escaping import printable
from npformer.language import say
from npformer.learn.console import breakable
from npformer.learn.course.latex import to_text
from npformer.learn.course.prose import replace_formulas, split_formulas

WIDTH = 100  # longer lines are hard to read
UNBROKEN = 40  # a longer formula in a line of prose may be broken
NO_BREAK = "\ue000"  # stands for a space at which no line may be broken; `lines_of` replaces it with a space
SPAN = re.compile(r"(?<!`)`[^`]+`(?!`)")
PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")  # a backslash makes each of these text in Markdown
THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.h1": "bold",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.link_url": "underline",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
CODE = ANSISyntaxTheme(
    {
        Token.Comment: Style(dim=True, italic=True),
        Token.Keyword: Style(bold=True),
        Token.Operator.Word: Style(bold=True),
        Token.Literal.String: Style(color="green"),
        Token.Literal.Number: Style(color="cyan"),
        Token.Name.Function: Style(color="magenta"),
        Token.Name.Class: Style(color="magenta"),
    }
)


def lesson_console(out: Console) -> Console:
    """Set the lessons' colours on a console and return it."""
    out.push_theme(THEME)
    return out


def unbroken(text: str) -> str:
    """Replace the spaces of a text so that `lines_of` breaks no line there, if possible."""
    return re.sub(r"\s+", NO_BREAK, text)


def prose(text: str) -> RenderableType:
    """Return Markdown for the terminal. Formulas are Unicode, and code in a line of prose is not broken."""
    parts: list[RenderableType] = []
    for part in split_formulas(text):
        if parts:
            parts.append(Text(""))
        if part.kind == "text":
            inline = replace_formulas(part.text, lambda latex, _: _inline(latex))
            inline = breakable(SPAN.sub(lambda span: unbroken(span[0]), inline))
            parts.append(Markdown(inline, code_theme=CODE))  # type: ignore[arg-type]  # it takes themes too
        else:
            parts.append(Padding(Text(to_text(part.text), style="bold cyan", no_wrap=True), (0, 0, 0, 4)))
    return Group(*parts)


def _inline(latex: str) -> str:
    """Return a formula as Markdown. Only long formulas may be broken."""
    shown = PUNCTUATION.sub(r"\\\1", " ".join(to_text(latex).split("\n")))
    return unbroken(shown) if len(shown) <= UNBROKEN else shown


def code(text: str) -> RenderableType:
    """Return Python code, coloured and indented."""
    syntax = Syntax(text, "python", theme=CODE, word_wrap=True)
    return Padding(syntax, (0, 0, 0, 2))


def lines_of(out: Console, thing: RenderableType) -> list[str]:
    """Return the lines that printing gives, with colours. They are at most WIDTH wide."""
    with out.capture() as capture:
        out.print(thing, width=min(out.width, WIDTH))
    return [line.rstrip() for line in capture.get().replace(NO_BREAK, " ").rstrip("\n").split("\n")]


# ---------------------------------------------------------------------------------------------------------
# A screen at a time

LEAST = 5  # with fewer free lines, a text begins on the next screen
# a terminal's answer to `terminal_questions.ask` that came too late stands before what the reader typed
LATE_ANSWER = re.compile(r"^(\033\[\?)?\d+(;\d+)+c")


class Screen:
    """Prints lines until the terminal is full, then asks how to go on.

    Args:
        out: The console.
        answer: answer(line) handles a line that the reader typed. It returns "on" to go on, "" to ask again,
            or a command that ends the step.
        stops: True to stop and ask; False to print everything.
        more: The question at the end of a full screen; by default that of a lesson.
    """

    def __init__(self, out: Console, answer: Callable[[str], str], *, stops: bool, more: str = "") -> None:
        self.more = more or f"{say('Enter: more · b back · q quit · ? help')} ▸ "
        self.out = out
        self.answer = answer
        self.stops = stops
        self.used = 0  # lines since the last question
        if stops:
            with contextlib.suppress(ImportError):  # on Windows there is no readline
                import readline  # noqa: F401 - importing it enables arrow keys and history

    @property
    def free(self) -> int:
        """The number of lines that still fit above the question."""
        return self.out.size.height - 2 - self.used

    def put(self, lines: list[str], where: str = "") -> str:
        """Print lines, in pages if they do not fit. Return "on", or the command that ended the step."""
        while self.stops and len(lines) > self.free:
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

    def put_together(self, lines: list[str], where: str = "") -> str:
        """Print lines as `put` does, on a new screen if that avoids a page break within them."""
        if self.stops and self.free < len(lines) <= self.out.size.height - 2:
            command = self.ask(f"{where} {self.more}")
            if command != "on":
                return command
        return self.put(lines, where)

    def _cut(self, lines: list[str]) -> int:
        """Return the number of lines for this page: up to an empty line, if its lower part has one."""
        if self.used and self.free < LEAST:
            return 0
        for cut in range(self.free, max(self.free // 3, LEAST - 1), -1):
            if not lines[cut].strip():
                return cut
        return max(self.free, 1)

    def write(self, lines: list[str]) -> None:
        """Print lines as they are."""
        for line in lines:
            print(line, file=self.out.file)
        self.used += len(lines)

    def ask(self, question: str) -> str:
        """Ask until the answer is "on" or a command. If the screen never stops, return "on" at once."""
        if not self.stops:
            return "on"
        if cell_len(question) > self.out.width:  # the question must fit on one line
            question = re.sub(r" · .* · \? ", " · ? ", question)
        while True:
            self.out.file.flush()
            try:
                line = input(question.strip() + " ")
            except (EOFError, KeyboardInterrupt):
                print(file=self.out.file)
                return "quit"
            self.used = 0
            command = self.answer(LATE_ANSWER.sub("", line.strip()))
            if command:
                return command


class FoldedStream(io.TextIOBase):
    """A stream that breaks long lines between words, counts them, and passes them on as printable text."""

    def __init__(self, target: IO[str], width: int) -> None:
        self.target = target
        self.width = width
        self.lines = 0
        self.begun = ""  # the beginning of a line that has not ended yet

    def write(self, text: str) -> int:
        *whole, self.begun = (self.begun + text).split("\n")
        for line in whole:
            self._write_line(line)
        return len(text)

    def end(self) -> None:
        """Write the last line if it does not end with a line break."""
        if self.begun:
            self._write_line(self.begun)
            self.begun = ""

    def _write_line(self, line: str) -> None:
        """Write one line in parts that fit the width."""
        line = printable(line, keep="\t")
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        parts = [line]
        if cell_len(line) > self.width:
            parts = textwrap.wrap(
                line, self.width, subsequent_indent=indent, replace_whitespace=False, break_on_hyphens=False
            )
        self.lines += len(parts)
        self.target.write("\n".join(parts) + "\n")
        self.target.flush()


def print_in_pages(out: Console, *things: RenderableType) -> None:
    """Print to standard output, one screen at a time if the text is higher than the terminal."""
    with out.capture() as capture:
        for thing in things:
            out.print(thing)
    lines = capture.get().rstrip("\n").split("\n")
    stops = sys.stdin.isatty() and sys.stdout.isatty()
    # anything but Enter is meant for the shell and ends the output
    more = f"{say('Enter: more · q quit')} ▸ "
    Screen(out, lambda line: "quit" if line else "on", stops=stops, more=more).put(lines)
