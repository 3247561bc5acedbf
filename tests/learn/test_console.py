"""The console prints strings as text: markup, emoji codes and escape sequences are shown as they are."""

import io

import pytest
from rich.progress import Progress
from rich.rule import Rule
from rich.table import Table

from npformer.learn.console import TextConsole, plain_table, styled, text_column

NASTY = "[red]a[/x] [/] :smile: \x1b[31m\x9b\u202e\r"
SHOWN = r"[red]a[/x] [/] :smile: \x1b[31m\x9b\u202e\r"


@pytest.fixture
def out():
    return TextConsole(width=100, file=io.StringIO(), force_terminal=True, color_system="standard")


def table(*cells):
    made = Table(box=None)
    made.add_column(cells[0])
    for cell in cells:
        made.add_row(cell)
    return made


@pytest.mark.parametrize(
    "thing",
    [NASTY, table(NASTY), table(styled(NASTY)), Rule(NASTY), styled(NASTY)],
    ids=["a string", "a cell", "a styled cell", "a rule", "styled"],
)
def test_a_string_is_text_everywhere(out, thing):
    out.print(thing)
    printed = out.file.getvalue()
    assert SHOWN in printed
    assert not set(printed) & set("\x9b\u202e\r")
    assert "\x1b[31m" not in printed


def test_a_progress_bar_shows_its_description_as_text(out):
    with Progress(text_column("{task.description}"), console=out) as progress:
        progress.add_task("[red]a[/x] :smile:", total=1)
    assert "[red]a[/x] :smile:" in out.file.getvalue()


def test_styles_come_from_pairs(out):
    out.print(styled("plain ", ("[bold]", "red"), " end"))
    assert out.file.getvalue() == "plain \x1b[31m[bold]\x1b[0m end\n"


def test_a_table_breaks_no_word_that_has_room():
    titles = ("name", "over (packed)", "tokens/s", "faster")
    rows = [("base37k", "1.23 (1.45)", "123,456", "1.23 (1.10–1.40)"), ("self-attention", "1", "2", "3")]
    made = plain_table(*titles, wrapped=titles)
    for row in rows:
        made.add_row(*row)
    for width in (47, 48, 100):
        out = TextConsole(width=width, file=io.StringIO())
        out.print(made)
        printed = out.file.getvalue()
        assert sorted(printed.split()) == sorted(" ".join(map(" ".join, [titles, *rows])).split())
        assert max(map(len, printed.splitlines())) <= width


def test_lines_and_tabs_of_a_text_stay(out):
    out.print("a\n\tb")
    assert out.file.getvalue() == "a\n        b\n"
