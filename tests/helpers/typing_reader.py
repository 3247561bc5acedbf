"""A command in this process, in a terminal of 100 × 30, for the tests that use it as a person does."""

import io
import itertools
import os
import re

from npformer.cli.main import main
from npformer.learn.course.lesson import find_lesson

COLUMNS, ROWS = 100, 30  # the size for which lessons are laid out
COLOURS = re.compile(r"\033\[[0-9;?]*[a-zA-Z]|\033[()][A-Z]|\r")
# environment variables that say what a terminal can show
OF_TERMINALS = re.compile(r"TMUX|STY|KITTY|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|COLUMNS|LINES|DISPLAY|WAYLAND")


class TerminalText(io.StringIO):
    """What is shown on a terminal, or typed there."""

    def isatty(self):
        return True


def without_colours(text):
    """Return a text without the escape sequences of colours."""
    return COLOURS.sub("", text)


def set_terminal(monkeypatch, **environment):
    """Set the environment variables of a terminal with colours, and others."""
    for name in filter(OF_TERMINALS.match, list(os.environ)):
        monkeypatch.delenv(name)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)


def screens_of(monkeypatch, *arguments, typed=(), columns=COLUMNS, status=0, colours=False, **environment):
    """Run a command in a terminal and return its screens: each is the text up to a question, or to the end.

    Args:
        monkeypatch: The fixture.
        arguments: The arguments of npformer.
        typed: The lines that are typed, one after each question. An exception, such as EOFError for Ctrl-D
            and KeyboardInterrupt for Ctrl-C, is raised. After the last line, only Enter is pressed.
        columns: The width of the terminal.
        status: The exit status that the command must have.
        colours: True to keep the colours.
        environment: Environment variables.
    """
    set_terminal(monkeypatch, **{"COLUMNS": str(columns), "LINES": str(ROWS), **environment})
    shown, lines, ends = TerminalText(), itertools.chain(typed, itertools.repeat("")), [0]

    def answer(question):
        shown.write(question)
        ends.append(shown.tell())
        line = next(lines)
        if not isinstance(line, str):
            raise line
        shown.write(f"{line}\n")  # its echo
        return line

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("sys.stdin", TerminalText())
    monkeypatch.setattr("sys.stdout", shown)
    assert main([str(argument) for argument in arguments]) == status
    text = shown.getvalue()
    screens = [text[begin:end] for begin, end in itertools.pairwise([*ends, len(text)])]
    return screens if colours else [without_colours(screen) for screen in screens]


def step_with(number, text):
    """Return the command that goes to the first step of a lesson whose code contains a text."""
    steps = enumerate(find_lesson(number).steps, 1)
    return next(f"g {place}" for place, step in steps if any(text in cell.text for cell in step.cells))
