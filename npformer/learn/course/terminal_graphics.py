"""Find out which images a terminal can show: those of kitty, of iTerm2, of Sixel, or none."""

import os
import re
from collections.abc import Mapping
from typing import IO, Literal, NamedTuple

from npformer.learn.course.terminal_questions import ask, cell_of_window

CELL = (10, 20)  # a letter's width and height in pixels if the terminal does not tell: those of the VT340
SIXEL = "4"  # among the attributes of a device
# the size of a letter, the size of the window, the number of colours, and the size of the largest picture
SIXEL_QUESTIONS = "\033[16t\033[14t\033[?1;1;0S\033[?2;1;0S"


class Graphics(NamedTuple):
    """The images that a terminal can show.

    Args:
        protocol: The escape sequences, or "" for a terminal that shows no images.
        cell: The width and height of a letter in pixels.
        colours: The largest number of colours in a picture of Sixel.
        largest: The largest width and height of a picture of Sixel in pixels, or None without a limit.
    """

    protocol: Literal["kitty", "iterm2", "sixel", ""]
    cell: tuple[int, int] = CELL
    colours: int = 256
    largest: tuple[int, int] | None = None


NONE = Graphics("")


def find_graphics(stream: IO[str], environment: Mapping[str, str]) -> Graphics | None:
    """Return the images that the terminal behind a stream can show.

    Programs such as tmux pass images on only if the terminal around them can show them, which they do not
    tell: inside them there are no images.

    Args:
        stream: An output stream that is a terminal.
        environment: The environment variables.

    Returns:
        The images, or None if the reader is typing, so that the terminal was not asked.
    """
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if "TMUX" in environment or "STY" in environment or term.startswith(("screen", "tmux")):
        return NONE
    cell = cell_of_window(stream) or CELL
    if "KITTY_WINDOW_ID" in environment or term in ("xterm-kitty", "xterm-ghostty") or program == "ghostty":
        return Graphics("kitty", cell)
    if program in ("iTerm.app", "WezTerm"):
        return Graphics("iterm2", cell)
    attributes = ask(stream, "")
    if attributes is None:
        return None
    if not has_sixel(attributes):
        return NONE
    size = os.get_terminal_size(stream.fileno())
    return sixel_graphics(ask(stream, SIXEL_QUESTIONS) or "", size, cell)


def has_sixel(attributes: str) -> bool:
    """Return whether the attributes of a device, such as "\\033[?62;4;22c", contain that of Sixel."""
    found = re.search(r"\033\[\?([\d;]*)c", attributes)
    return found is not None and SIXEL in found[1].split(";")


def sixel_graphics(answers: str, window: os.terminal_size, cell: tuple[int, int]) -> Graphics:
    """Return the limits of Sixel pictures that a terminal has answered.

    Args:
        answers: The answers to SIXEL_QUESTIONS, some of which may be missing.
        window: The columns and lines of the terminal.
        cell: The width and height of a letter if they are not among the answers.
    """
    if letter := _numbers(r"\033\[6;(\d+);(\d+)t", answers):
        cell = letter[1], letter[0]
    elif pixels := _numbers(r"\033\[4;(\d+);(\d+)t", answers):
        cell = max(pixels[1] // window.columns, 1), max(pixels[0] // window.lines, 1)
    colours = _numbers(r"\033\[\?1;0;(\d+)S", answers)
    largest = _numbers(r"\033\[\?2;0;(\d+);(\d+)S", answers)
    return Graphics(
        "sixel",
        cell,
        min(max(colours[0], 2), 256) if colours else 256,
        (largest[0], largest[1]) if largest else None,
    )


def _numbers(pattern: str, answers: str) -> list[int]:
    """Return the numbers of an answer, or none if it is missing or one of them is 0."""
    found = re.search(pattern, answers)
    numbers = [int(number) for number in found.groups()] if found else []
    return numbers if all(numbers) else []
