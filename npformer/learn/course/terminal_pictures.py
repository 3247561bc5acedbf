"""Figures in the terminal: as images if it can show them, and as coloured cells elsewhere."""

import base64
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from npformer.escaping import printable
from npformer.learn.course.cell_picture import cell_picture
from npformer.learn.course.pictures import open_file
from npformer.learn.course.terminal import LEAST, WIDTH, Screen, lines_of
from npformer.learn.course.terminal_graphics import NONE, Graphics, find_graphics

if TYPE_CHECKING:
    from npformer.plots import Figure

CHUNK = 4096  # bytes of base64 in one of kitty's escape sequences
QUESTION = 2  # lines below a picture and its caption


class PictureTerminal:
    """Turns figures into lines of a terminal, which is asked once whether it can show images.

    Args:
        out: The console.
    """

    def __init__(self, out: Console) -> None:
        self.out = out
        self.graphics: Graphics | None = None  # None: the terminal was not asked yet

    def lines(self, figure: "Figure", saved: Path, below: int) -> list[str]:
        """Return the lines that show a figure, or none if the terminal shows no colours or is too low.

        Args:
            figure: The figure.
            saved: The PNG file in which it is saved.
            below: The number of lines that must have room below it, without those of a question.
        """
        shows_colours = self.out.color_system is not None and not self.out.no_color
        columns, rows = min(self.out.width, WIDTH), self.out.size.height - QUESTION - below
        if not (self.out.file.isatty() and shows_colours) or rows < LEAST:
            return []
        if self.graphics is None:
            self.graphics = find_graphics(self.out.file, os.environ)
        graphics = self.graphics or NONE
        if graphics.protocol:
            return image_lines(figure, saved, graphics, columns, rows)
        return lines_of(self.out, cell_picture(figure, columns, rows))


def image_lines(figure: "Figure", saved: Path, graphics: Graphics, columns: int, rows: int) -> list[str]:
    """Return the lines that show a figure as an image, with an empty line below it.

    Terminals differ in where they leave the cursor after an image, and those that leave it below scroll at
    the end of the screen. So all lines of the image are empty and are printed first. The last line goes back
    to the first one, draws the image, and returns.

    Args:
        figure: The figure.
        saved: The PNG file in which it is saved.
        graphics: The images that the terminal can show.
        columns: The largest width, in letters.
        rows: The largest number of lines.
    """
    rows = image_rows(figure, graphics, columns, rows - 1)
    if graphics.protocol == "sixel":
        image = _sixel(figure, graphics, rows)
    else:
        image = png_sequence(saved.read_bytes(), graphics.protocol, rows)
    return [*[""] * rows, f"\033[{rows}A\0337{image}\0338\033[{rows}B"]


def image_rows(figure: "Figure", graphics: Graphics, columns: int, rows: int) -> int:
    """Return the number of lines of an image: as many as fit, and no more than the saved file has pixels.

    Args:
        figure: The figure.
        graphics: The images that the terminal can show.
        columns: The largest width, in letters.
        rows: The largest number of lines.
    """
    from npformer.plots.style import DPI  # matplotlib takes a second to load

    width, height = figure.get_size_inches()
    most = [columns * graphics.cell[0] / width, DPI]  # pixels per inch
    if graphics.largest is not None:
        most += [graphics.largest[0] / width, graphics.largest[1] / height]
    return max(min(int(min(most) * height / graphics.cell[1]), rows), 1)


def _sixel(figure: "Figure", graphics: Graphics, rows: int) -> str:
    """Return the escape sequence of Sixel that shows a figure in some lines, at most."""
    from npformer.plots.sixel import BAND, sixel_picture  # matplotlib takes a second to load

    height = max(rows * graphics.cell[1] // BAND, 1) * BAND  # terminals draw whole bands
    return sixel_picture(figure, height / figure.get_size_inches()[1], graphics.colours)


def png_sequence(png: bytes, protocol: str, rows: int) -> str:
    """Return the escape sequence of kitty or iTerm2 that shows a PNG.

    Args:
        png: The bytes of the PNG file.
        protocol: "kitty" or "iterm2".
        rows: The height of the picture in lines.
    """
    data = base64.b64encode(png).decode()
    if protocol == "iterm2":
        return f"\033]1337;File=inline=1;size={len(png)};height={rows}:{data}\a"
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    parts = []
    for index, chunk in enumerate(chunks):
        first = f"a=T,f=100,r={rows}," if index == 0 else ""
        parts.append(f"\033_G{first}m={int(index < len(chunks) - 1)};{chunk}\033\\")
    return "".join(parts)


def print_pictures(out: Console, pictures: Sequence[tuple["Figure", Path]]) -> None:
    """Show figures on a terminal, one after the other. Elsewhere, print nothing.

    Args:
        out: The console.
        pictures: Each figure with the PNG file in which it is saved.
    """
    if not sys.stdout.isatty():
        return
    terminal, shown = PictureTerminal(out), list[Path]()

    def answer(line: str) -> str:
        if line.lower() == "o" and shown:
            screen.write([printable(open_file(shown[-1]))])
            return ""
        return "quit" if line else "on"

    screen = Screen(out, answer, stops=sys.stdin.isatty(), more="Enter: more · o opens the file · q quit ▸ ")
    for figure, path in pictures:
        caption = lines_of(out, Text(printable(path), style="dim"))
        if screen.put_together([*terminal.lines(figure, path, len(caption)), *caption]) != "on":
            return
        shown.append(path)
