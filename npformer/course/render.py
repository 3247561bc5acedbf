"""Prose and code as lines for a terminal, in colours that read on a dark ground and on a light one."""

import re

from pygments.token import Token
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme

from npformer.terminal import console

WIDTH = 100  # longer lines are hard to read
HELD = "\ue000"  # a space at which no line is broken; lines_of makes it one
SPAN = re.compile(r"(?<!`)`[^`]+`(?!`)")
FORMULA = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
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


def lesson_console() -> Console:
    """Standard output with the lessons' colours."""
    out = console()
    out.push_theme(THEME)
    return out


def split_formulas(text: str) -> list[tuple[str, str]]:
    """Prose in parts ("prose", ...) and ("math", ...): formulas are fenced as ```math."""
    parts = []
    for index, part in enumerate(FORMULA.split(text)):
        if part.strip():
            parts.append(("math" if index % 2 else "prose", part.strip("\n")))
    return parts


def unbroken(text: str) -> str:
    """The text with spaces at which lines_of breaks no line, if it can be helped."""
    return re.sub(r"\s+", HELD, text)


def prose(text: str) -> RenderableType:
    """Markdown, its formulas set in by four columns; code to be typed stays on one line."""
    parts: list[RenderableType] = []
    for kind, part in split_formulas(text):
        if parts:
            parts.append(Text(""))
        if kind == "math":
            parts.append(Padding(Text(part, style="bold cyan", no_wrap=True), (0, 0, 0, 4)))
        else:
            part = SPAN.sub(lambda span: unbroken(span[0]), part)
            parts.append(Markdown(part, code_theme=CODE))  # type: ignore[arg-type]  # it takes themes too
    return Group(*parts)


def code(text: str) -> RenderableType:
    """Python, coloured and set in by two columns."""
    made = Syntax(text, "python", theme=CODE, word_wrap=True)
    return Padding(made, (0, 0, 0, 2))


def lines_of(out: Console, thing: RenderableType) -> list[str]:
    """The lines that printing would give, with their colours: as wide as the terminal is now, or WIDTH."""
    with out.capture() as capture:
        out.print(thing, width=min(out.width, WIDTH))
    return [line.rstrip() for line in capture.get().replace(HELD, " ").rstrip("\n").split("\n")]
