"""A console that prints strings as text: no markup, no emoji codes, no escape sequences from outside."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from npformer.escaping import printable

LINES = "\n\t"  # the characters that arrange a text of several lines
BREAK = "\x1f"  # stands between Chinese characters, where a line may be broken; the console does not print it
# a place beside a Chinese character, before no closing mark and after no opening one
BREAKABLE = re.compile(
    r"(?<![（《“‘「\s])(?=[\u4e00-\u9fff（《“‘「])(?<=\S)|(?<=[\u4e00-\u9fff，。、；：！？）》”’」])(?=[^\s，。、；：！？）》”’」…])"
)


def breakable(text: str) -> str:
    """Return a text for a `TextConsole`, which breaks its lines also between Chinese characters."""
    return BREAKABLE.sub(BREAK, text)


class TextConsole(Console):
    """A console of rich for which a string is text, in a line, in a table and everywhere else.

    Styles come from `styled` and from the arguments of rich, never from markup in a string.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Convert a string to rich's text, with escapes for characters that would steer the terminal."""
        return super().render_str(breakable(printable(text, keep=LINES)), **settings)

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Yield the parts of lines, without the marks of `breakable`."""
        for segment in super().render(renderable, options):
            yield segment._replace(text=segment.text.replace(BREAK, "")) if BREAK in segment.text else segment


def styled(*parts: str | tuple[str, str]) -> Text:
    """Return text for a console, made of strings and of pairs (string, style) such as ("solved", "green")."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((breakable(printable(text, keep=LINES)), style) for text, style in pairs))


def text_column(form: str) -> TextColumn:
    """Return a column of a progress bar that shows the fields of a task as text, as "{task.description}"."""
    return TextColumn(form, markup=False)


def counting_progress(out: Console, form: str = "{task.description}", *, transient: bool = False) -> Progress:
    """Return a bar that counts what is done.

    Args:
        out: The console.
        form: The text before the bar, with fields of the task.
        transient: Whether the bar disappears at the end.
    """
    columns = (text_column(form), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=out, transient=transient)


class PlainTable(Table):
    """A table without lines between its columns, in which a console breaks no word if the words have room."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the columns the widths that keep words whole, and yield the parts of the lines."""
        widths, least = [], []
        for column in self.columns:
            texts = "\n".join(breakable(str(cell)) for cell in (column.header, *column.cells))
            widths.append(max(map(cell_len, texts.split("\n"))))
            words = texts.split("\n") if column.no_wrap else texts.split()
            least.append(max(map(cell_len, words), default=0))
        room = options.max_width - 2 * (len(widths) - 1)
        if sum(least) <= room < sum(widths):
            while sum(widths) > room:
                above = [(width, place) for place, width in enumerate(widths) if width > least[place]]
                widths[max(above)[1]] -= 1
            for column, width in zip(self.columns, widths, strict=True):
                column.width = width
        return super().__rich_console__(console, options)


def plain_table(*titles: str, wrapped: Sequence[str] = ()) -> Table:
    """Return a table without lines between its columns and rows.

    Args:
        titles: The titles of the columns. ">" begins that of a column that is aligned right.
        wrapped: The titles of the columns whose text may be broken into lines.
    """
    table = PlainTable(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        name = title.removeprefix(">")
        table.add_column(name, justify="left" if name == title else "right", no_wrap=name not in wrapped)
    return table
