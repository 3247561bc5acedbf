"""The percent format: a Python file whose cells begin with `# %%` and whose prose with `# %% [markdown]`."""

import ast
import re
from dataclasses import dataclass

from npformer.errors import UserError

MARKER = re.compile(r"#\s?%%(?P<rest>.*)")
PROSE = ("[markdown]", "[md]")


@dataclass(frozen=True)
class Cell:
    """One cell: prose (Markdown, without its comment signs) or code, and the line where its text begins."""

    kind: str  # "prose" or "code"
    text: str
    line: int


@dataclass(frozen=True)
class Step:
    """What the terminal shows at once: the prose before a cell of code, and that cell (None at the end)."""

    prose: tuple[Cell, ...]
    code: Cell | None


def parse(source: str, name: str = "the lesson") -> list[Cell]:
    """The cells of a file in percent format, in order; empty ones are left out.

    Errors: UserError where prose holds a line that is no comment, or code does not parse; it names the line.
    """
    cells, kind, lines, first = [], "code", list[str](), 1
    for number, line in enumerate([*source.splitlines(), "# %%"], 1):
        marker = MARKER.fullmatch(line)
        if marker is None:
            lines.append(line)
            continue
        cell = _cell(kind, lines, first, name)
        if cell.text:
            cells.append(cell)
        kind = "prose" if any(sign in marker["rest"] for sign in PROSE) else "code"
        lines, first = [], number + 1
    return cells


def _cell(kind: str, lines: list[str], first: int, name: str) -> Cell:
    """A cell without the empty lines round it. line is the number of its first line that is not empty."""
    while lines and not lines[0].strip():
        lines, first = lines[1:], first + 1
    text = "\n".join(lines).rstrip()
    if kind == "prose":
        return Cell(kind, _without_signs(text, first, name), first)
    try:
        ast.parse(text)
    except SyntaxError as error:
        line = first + (error.lineno or 1) - 1
        raise UserError(f"{name}, line {line}: {error.msg}: mend this cell") from None
    return Cell(kind, text, first)


def _without_signs(text: str, first: int, name: str) -> str:
    """Prose without the `# ` before each line."""
    plain = []
    for number, line in enumerate(text.splitlines(), first):
        if line.strip() and not line.startswith("#"):
            raise UserError(f"{name}, line {number}: prose must be comments: put `# ` before the line")
        plain.append(line[2:] if line.startswith("# ") else line[1:])
    return "\n".join(plain).strip()


def steps_of(cells: list[Cell]) -> list[Step]:
    """The cells in groups of some prose and one of code; prose after the last code is a step of its own."""
    steps, prose = [], list[Cell]()
    for cell in cells:
        if cell.kind == "prose":
            prose.append(cell)
        else:
            steps.append(Step(tuple(prose), cell))
            prose = []
    return [*steps, Step(tuple(prose), None)] if prose else steps
