"""A figure as coloured cells of a terminal that can show no images, with its texts in letters.

A cell shows two pixels, one above the other, as the lower half block ▄ on a coloured ground.
"""

import re
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from npformer.errors import UserError
from npformer.escaping import printable
from npformer.learn.course.latex import to_text

if TYPE_CHECKING:
    from npformer.plots import Figure
    from npformer.plots.raster import Label

Letters: TypeAlias = dict[tuple[int, int], tuple[str, str]]  # (row, column): letter and colour

BLOCK = "▄"
LETTER = re.compile(r".[\u0300-\u036f\u20d0-\u20ff]*")  # with its accents
VERTICAL = 60  # degrees
BLANK = 250  # of 255: where each channel of a colour has at least this value, the figure is white
SHIFTS = (0, -1, 1, -2, 2, -3, 3)  # by how many cells a text may be moved off what is drawn
MATH = re.compile(r"(?<!\\)\$(.+?)(?<!\\)\$")


def cell_picture(figure: "Figure", columns: int, rows: int) -> Text:
    """Return a figure as lines of coloured cells.

    Args:
        figure: The figure.
        columns: The largest width, in cells.
        rows: The largest height, in cells, which are twice as high as wide.
    """
    from npformer.plots.raster import rasterize  # matplotlib takes a second to load

    pixels, labels = rasterize(figure, columns, 2 * rows)
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, np.full_like(pixels[:1], 255)])
    upper, lower = pixels[::2], pixels[1::2]  # each (rows, columns, 3)
    blank = np.minimum(upper, lower).min(-1) >= BLANK  # (rows, columns): where nothing is drawn
    letters: Letters = {}
    for label in labels:
        _place(label, letters, blank)
    lines = []
    for row in range(len(upper)):
        line = Text(no_wrap=True, end="")
        column = 0
        while column < upper.shape[1]:
            above, below = upper[row, column], lower[row, column]
            letter, colour = letters.get((row, column), (BLOCK, _hex(below)))
            ground = (
                above if letter == BLOCK else np.maximum(above, below)
            )  # a line below a letter is left out
            line.append(letter, Style(color=colour, bgcolor=_hex(ground)))
            column += max(cell_len(letter), 1)
        lines.append(line)
    return Text("\n", end="").join(lines)


def _hex(colour: np.ndarray) -> str:
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"


def _place(label: "Label", letters: Letters, blank: np.ndarray) -> None:
    """Put a label where the figure has it, or near there; leave it out if it does not fit.

    A label that stands beside what is drawn is moved off it, and a vertical one is cut if there is no room.
    """
    height, width = blank.shape
    text = LETTER.findall(_in_letters(label.text))
    size, row = sum(map(cell_len, text)), int(label.y // 2)
    rows = [row, row - 1, row + 1]
    if abs(label.angle) > VERTICAL:
        if len(text) == size <= height:
            column = min(max(int(label.x), 0), width - 1)
            for cut in [text, *([*text[:end], "…"] for end in range(size - 2, 2, -1))]:
                first = round(min(max(row - len(cut) / 2, 0), height - len(cut)))
                down = [(first + index, column) for index in range(len(cut))]
                tries = [[(y + shift, column) for y, _ in down] for shift in SHIFTS]
                if _write_beside(cut, label.colour, tries, letters, blank):
                    return
            first = round(min(max(row - size / 2, 0), height - size))
            _write(text, label.colour, [(first + index, column) for index in range(size)], letters)
            return
        rows = [0]  # a name of an axis that is too long stands above it
    if size > width:
        return
    first = round(min(max(label.x - size / 2, 0), width - size))
    columns = [first + offset for offset in accumulate(map(cell_len, text[:-1]), initial=0)]
    lines = [min(max(each, 0), height - 1) for each in rows]
    tries = [[(line, column + shift) for column in columns] for line in lines for shift in SHIFTS]
    if _write_beside(text, label.colour, tries, letters, blank):
        return
    on_it = not blank[lines[0], min(max(int(label.x), 0), width - 1)]  # such as the number in a cell
    for line in lines if on_it else lines[:1]:
        if _write(text, label.colour, [(line, column) for column in columns], letters):
            return


def _write_beside(
    text: list[str], colour: str, tries: list[list[tuple[int, int]]], letters: Letters, blank: np.ndarray
) -> bool:
    """Write letters at the first of some places where nothing is drawn. Return False if there are none."""
    height, width = blank.shape
    for places in tries:
        last_row, last_column = places[-1]
        is_inside = min(*places[0]) >= 0 and last_row < height and last_column + cell_len(text[-1]) <= width
        if is_inside and all(blank[place] for place in places) and _write(text, colour, places, letters):
            return True
    return False


def _write(
    text: list[str],
    colour: str,
    places: list[tuple[int, int]],
    letters: Letters,
) -> bool:
    """Write letters at their places, one cell away from other texts. Return False if there is no room."""
    around = {(row, column + beside) for row, column in places for beside in (-1, 0, 1)}
    if any(place in letters for place in around):
        return False
    letters |= {place: (letter, colour) for place, letter in zip(places, text, strict=True)}
    return True


def _in_letters(text: str) -> str:
    """Return a text of a figure with its formulas in Unicode."""

    def shown(found: re.Match[str]) -> str:
        try:
            return to_text(found[1])
        except UserError:
            return found[1]

    return printable(MATH.sub(shown, text).replace(r"\$", "$").strip())
