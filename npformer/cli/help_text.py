"""The help of a command: prose is wrapped, and examples keep their lines if the terminal is wide enough."""

import argparse
import re
import textwrap
from itertools import groupby

TWO_COLUMNS = re.compile(r"(.*?\S {2,})(\S.*)")  # an example, and what it does
COMMAND = re.compile(r" *([\w ]+: )?(npformer|python) ")
WORD = re.compile(r'(?:"[^"]*"|\S)+')  # of a command, where quotation marks keep a text together
NARROWEST = 30  # a second column of this width stays beside the first one


class HelpFormatter(argparse.HelpFormatter):
    """A formatter of a description, of arguments and of the examples that end a help."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width)  # argparse would break en-de at its hyphen

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        for kind, group in groupby(text.splitlines(), _kind):
            if kind == "example":
                lines += [part for line in group for part in wrap_example(line, width)]
            else:
                lines += wrap(" ".join(group), width) or [""]
        return "\n".join(lines)


def wrap(text: str, width: int, first: str = "", margin: str = "") -> list[str]:
    """Return the lines of a text, which is broken at spaces alone.

    Args:
        text: The text.
        width: The number of characters of a line.
        first: The beginning of the first line.
        margin: The beginning of the others.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrap_example(line: str, width: int) -> list[str]:
    """Return the lines of an example that is no wider than a width.

    Args:
        line: A command; or a command and, after two spaces or more, what it does.
        width: The number of characters of a line.
    """
    if len(line) <= width:
        return [line]
    columns = TWO_COLUMNS.fullmatch(line)
    if columns is None:
        return _wrap_command(line, width)
    command, text = columns.groups()
    if width - len(command) >= max(NARROWEST, *map(len, text.split())):
        return wrap(text, width, command, " " * len(command))
    return [command.rstrip(), *wrap(text, width, " " * 8, " " * 8)]


def _wrap_command(line: str, width: int) -> list[str]:
    """Return the lines of a command, which end with what lets a shell join them."""
    first, *others = WORD.findall(line)
    lines, margin = [line[: len(line) - len(line.lstrip())] + first], " " * (line.index("npformer") + 4)
    for word in others:
        if len(lines[-1]) + 1 + len(word) > width - 2:
            lines[-1] += " \\"
            lines.append(f"{margin}{word}")
        else:
            lines[-1] += f" {word}"
    return lines


def _kind(line: str) -> str:
    """Return whether a line is an example, prose, or empty."""
    if COMMAND.match(line) or TWO_COLUMNS.fullmatch(line):
        return "example"
    return "prose" if line else "empty"
