"""A figure as coloured cells of a terminal that can show no images, with its texts in letters.

A cell shows two pixels, one above the other, as the lower half block ▄ on a coloured ground.
"""

import re
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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


class Cells(NamedTuple):
    """The cells of a picture.

    Args:
        upper, lower: The colours of the upper and the lower half of each cell, uint8 (rows, columns, 3).
        letters: The letters in the cells.
        lost: The number of texts that have no room, or not for all of their letters.
    """

    upper: np.ndarray
    lower: np.ndarray
    letters: Letters
    lost: int


def cell_picture(figure: "Figure", columns: int, rows: int) -> Text:
    """Return a figure as lines of coloured cells.

    A low figure becomes twice as high if more of its texts have room then.

    Args:
        figure: The figure.
        columns: The largest width, in cells.
        rows: The largest height, in cells, which are twice as high as wide.
    """
    cells = _cells(figure, columns, rows)
    if cells.lost and 2 * len(cells.upper) <= rows:
        cells = min(cells, _cells(figure, columns, rows, stretch=2), key=lambda each: each.lost)
    lines = []
    for row in range(len(cells.upper)):
        line = Text(no_wrap=True, end="")
        column = 0
        while column < cells.upper.shape[1]:
            above, below = cells.upper[row, column], cells.lower[row, column]
            letter, colour = cells.letters.get((row, column), (BLOCK, _hex(below)))
            ground = above if letter == BLOCK else _ground(colour, above, below)
            line.append(letter, Style(color=colour, bgcolor=_hex(ground)))
            column += max(cell_len(letter), 1)
        lines.append(line)
    return Text("\n", end="").join(lines)


def _cells(figure: "Figure", columns: int, rows: int, stretch: int = 1) -> Cells:
    """Return a figure as cells. See `rasterize` for `stretch`."""
    from npformer.plots.raster import rasterize  # matplotlib takes a second to load

    pixels, labels = rasterize(figure, columns, 2 * rows, stretch)
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, np.full_like(pixels[:1], 255)])
    upper, lower = pixels[::2], pixels[1::2]  # each (rows, columns, 3)
    blank = np.minimum(upper, lower).min(-1) >= BLANK  # (rows, columns): where nothing is drawn
    letters: Letters = {}
    lost = 0
    for numbers in _tables(labels):
        found = _in_cells(numbers, blank.shape)
        letters |= found
        lost += 0 if found else len(numbers)
    for label in labels:
        if not label.table:
            lost += not _place(label, letters, blank)
    return Cells(upper, lower, letters, lost)


def _hex(colour: np.ndarray) -> str:
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"


def _ground(colour: str, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return the colour behind a letter: that of its two pixels which differs more from the letter."""
    return max(above, below, key=lambda pixel: int(abs(pixel.astype(int) - _channels(colour)).sum()))


def _channels(colour: str) -> list[int]:
    """Return the red, green and blue of a colour such as #1d2126."""
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


def _tables(labels: list["Label"]) -> list[list["Label"]]:
    """Return the numbers of each table. Tables with fractions count as one: a product shows all or none."""
    tables: dict[str, list[Label]] = {}
    for label in labels:
        if label.table:
            tables.setdefault(label.table, []).append(label)
    fractions = [numbers for numbers in tables.values() if any("." in label.text for label in numbers)]
    whole = [numbers for numbers in tables.values() if numbers not in fractions]
    return [*whole, [label for numbers in fractions for label in numbers]]


def _in_cells(labels: list["Label"], shape: tuple[int, ...]) -> Letters:
    """Return the letters of numbers in cells, or none if one of them has no room in its cell."""
    letters: Letters = {}
    for label in labels:
        text, row = _in_letters(label.text), int(label.y // 2)
        first = round(label.x - len(text) / 2)
        tries = [[(row, first + shift + offset) for offset in range(len(text))] for shift in SHIFTS[:3]]
        inside = [places for places in tries if places[0][1] >= 0 and places[-1][1] < shape[1]]
        if not any(_write(list(text), label.colour, places, letters) for places in inside):
            return {}
    return letters


def _place(label: "Label", letters: Letters, blank: np.ndarray) -> bool:
    """Put a label where the figure has it, or near there; leave it out if it does not fit.

    A label that stands beside what is drawn is moved off it, and a vertical one is cut if there is no room.

    Returns:
        Whether all of its letters have found room.
    """
    height, width = blank.shape
    text = LETTER.findall(_in_letters(label.text))
    size, row = sum(map(cell_len, text)), int(label.y // 2)
    rows = [row, row + 1, row - 1] if label.y % 2 >= 1 else [row, row - 1, row + 1]
    if abs(label.angle) > VERTICAL:
        if len(text) == size <= height:
            column = min(max(int(label.x), 0), width - 1)
            for cut in [text, *([*text[:end], "…"] for end in range(size - 2, 2, -1))]:
                first = round(min(max(row - len(cut) / 2, 0), height - len(cut)))
                down = [(first + index, column) for index in range(len(cut))]
                tries = [[(y + shift, column) for y, _ in down] for shift in SHIFTS]
                if _write_beside(cut, label.colour, tries, letters, blank):
                    return cut is text
            first = round(min(max(row - size / 2, 0), height - size))
            return _write(text, label.colour, [(first + index, column) for index in range(size)], letters)
        rows = [0]  # a name of an axis that is too long stands above it
    if size > width:
        return False
    first = round(min(max(label.x - size / 2, 0), width - size))
    columns = [first + offset for offset in accumulate(map(cell_len, text[:-1]), initial=0)]
    lines = [min(max(each, 0), height - 1) for each in rows]
    tries = [[(line, column + shift) for column in columns] for line in lines for shift in SHIFTS]
    is_light = min(_channels(label.colour)) > BLANK // 2  # such letters stand on a dark ground
    if not is_light and _write_beside(text, label.colour, tries, letters, blank):
        return True
    on_it = not blank[lines[0], min(max(int(label.x), 0), width - 1)]  # such as the number in a cell
    places = [[(line, column) for column in columns] for line in (lines if on_it else lines[:1])]
    return any(_write(text, label.colour, place, letters) for place in places)


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
