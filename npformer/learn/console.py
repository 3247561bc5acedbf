"""A console that prints strings as text: no markup, no emoji codes, no escape sequences from outside."""

from typing import Any

from rich.console import Console
from rich.progress import TextColumn
from rich.text import Text

from npformer.escaping import printable

LINES = "\n\t"  # the characters that arrange a text of several lines


class TextConsole(Console):
    """A console of rich for which a string is text, in a line, in a table and everywhere else.

    Styles come from `styled` and from the arguments of rich, never from markup in a string.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Convert a string to rich's text, with escapes for characters that would steer the terminal."""
        return super().render_str(printable(text, keep=LINES), **settings)


def styled(*parts: str | tuple[str, str]) -> Text:
    """Return text for a console, made of strings and of pairs (string, style) such as ("solved", "green")."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((printable(text, keep=LINES), style) for text, style in pairs))


def text_column(form: str) -> TextColumn:
    """Return a column of a progress bar that shows the fields of a task as text, as "{task.description}"."""
    return TextColumn(form, markup=False)
