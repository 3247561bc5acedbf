"""Board: a canvas for pictures of several matrices. It has no fixed size until it is cut at the end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, PathPatch, Rectangle
from matplotlib.path import Path
from numpy.typing import ArrayLike

from npformer.plots.boxes import Box, Point, arrow, draw_box, rounded
from npformer.plots.cells import CELL, GAP, Grid, Placed, band_of, draw_cells, write_round
from npformer.plots.layout import PAD, axes_at, new_figure, titled_figure
from npformer.plots.palette import COLOURS
from npformer.plots.palette import colour as colour_of
from npformer.plots.style import LABEL, SMALL, TEXT, Texts, drawing, number, text_size, widest

SIGN = 15.0  # points, of × and = between matrices
BETWEEN = 0.16  # inches, between a matrix and a sign
numbered = partial(Grid, numbers=True)  # a grid with its numbers in the cells
WIDEST_CELL = 0.8  # inches, the widest cell for column labels; longer labels are turned


class Board:
    """A canvas for grids, boxes, arrows and text that records the space they take.

    All positions and sizes are in inches, and y grows upwards. Use a board inside `drawing`. All grids of a
    board have cells of the same width, so that equal shapes look equal. The cells are wide enough for every
    number of `matrices`, in the form that `write` returns, and for the short column labels in `names`.

        with new_board(words, matrices=[x, z]) as board:
            placed = board.grid(Grid(x, "$X$", "x"), 0, 0)
            board.arrow((placed.right, placed.centre[1]), (placed.right + 0.4, placed.centre[1]))
        return board.figure

    Args:
        matrices: The arrays whose numbers must fit into the cells.
        write: A function that writes a number; by default with two decimals.
        names: The column labels that must fit above the cells.
        margin: The space beside a number in its cell, in inches.
    """

    def __init__(
        self,
        matrices: Sequence[ArrayLike] = (),
        *,
        write: Callable[..., str] = number,
        names: Sequence[str] = (),
        margin: float = 0.1,
    ) -> None:
        self.write = write
        texts = [self.write(value) for matrix in matrices for value in np.ravel(matrix)]
        named = widest(names, TEXT) + 0.08
        self.cell = max(CELL, widest(texts, SMALL) + margin, named if named <= WIDEST_CELL else 0)
        self.figure = new_figure(1, 1)
        self.ax = axes_at(self.figure, 0, 0, 1, 1)
        self.ax.set_axis_off()
        self.low, self.high = np.full(2, np.inf), np.full(2, -np.inf)

    # Matrices.

    def size(self, grid: Grid) -> tuple[float, float]:
        """Return width and height of a grid's cells."""
        rows, columns = grid.values.shape
        return columns * self.cell, rows * CELL

    def grid(self, grid: Grid, left: float, top: float, *, label: str = "above") -> Placed:
        """Draw a grid with the upper left corner of its cells at a place, and return the place of the cells.

        Args:
            grid: The grid.
            left, top: The upper left corner of the cells.
            label: The side on which the name of the grid stands: "above", "below", "left" or "right".

        Returns:
            The rectangle of the cells, without the text around them.
        """
        width, height = self.size(grid)
        # above=4: in front of the boxes around the cells
        draw_cells(self.ax, grid, left, top, self.cell, self.write, above=4)
        placed = Placed(left, top - height, left + width, top)
        self.take(*placed)
        self.take(left, top, left + width, write_round(self.text, grid, placed, self.cell, label))
        return placed

    def grid_at(self, grid: Grid, x: float, y: float, *, label: str = "above") -> Placed:
        """Draw a grid with the middle of its cells at a place, and return the place of the cells.

        Args:
            grid, label: As for `grid`.
            x, y: The middle of the cells.
        """
        width, height = self.size(grid)
        return self.grid(grid, x - width / 2, y + height / 2, label=label)

    def product(self, parts: Sequence[Grid | str], left: float, y: float) -> list[Placed]:
        """Draw grids and the signs between them in a row, and return the places of the grids.

        Args:
            parts: The grids and the signs, from left to right.
            left: The left edge of the cells of the first grid. Its row labels stand before it.
            y: The vertical middle of the row.

        Returns:
            For each grid, the rectangle of its cells.
        """
        placed: list[Placed] = []
        for part in parts:
            if isinstance(part, str):
                width = text_size(part, SIGN, math=True)[0]
                self.text(left + width / 2, y, part, size=SIGN)
            else:
                width, height = self.size(part)
                if placed and part.rows is not None:
                    left += widest(part.rows, TEXT) + GAP
                placed.append(self.grid(part, left, y + height / 2))
            left += width + BETWEEN
        return placed

    def band(self, names: Sequence[str]) -> float:
        """Return the height of column labels, which are turned upright where they are wider than a cell."""
        return band_of(names, self.cell)

    def row(self, values: Iterable[float]) -> str:
        """Return a vector as text, its numbers written as in the cells."""
        return f"[{'  '.join(map(self.write, values))}]"

    # Everything else.

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = TEXT,
        ha: str = "center",
        va: str = "center_baseline",
        room: bool = True,
        **style: Any,
    ) -> None:
        """Write text at a place.

        Args:
            x, y: The place.
            text, size: The text, and the size of its letters in points.
            ha: The part of the text that is at x: "left", "center" or "right".
            va: The part of the text that is at y: "bottom", "top", "center" or "center_baseline".
            room: Record the space of the text. It is False for text inside a box or a frame.
            style: Settings of matplotlib's Text.
        """
        self.ax.text(x, y, text, size=size, ha=ha, va=va, **({"zorder": 6} | style))
        if room:
            width, height = text_size(
                text, size, weight=style.get("weight", "normal"), math=style.get("parse_math", True)
            )
            left = x - width * {"left": 0.0, "center": 0.5, "right": 1.0}[ha]
            below = y - height * {"bottom": 0.0, "top": 1.0}.get(va, 0.5)
            self.take(left, below, left + width, below + height)

    def box(
        self,
        label: str,
        x: float,
        y: float,
        width: float,
        height: float = 0.42,
        *,
        colour: str = "plain",
        size: float = LABEL,
        **style: Any,
    ) -> Box:
        """Draw a box with a label, and return it.

        Args:
            label, size: The label, and the size of its letters in points.
            x, y: The centre.
            width, height: The size.
            colour: A role of the palette.
            style: Settings of boxes.draw_box.

        Raises:
            UserError: If the label is larger than the box.
        """
        self.take(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        return draw_box(self.ax, Box(label, x, y, width, height, colour, size), **style)

    def frame(
        self, left: float, bottom: float, right: float, top: float, *, colour: str = "plain", label: str = ""
    ) -> None:
        """Draw a large rectangle behind everything else.

        Args:
            left, bottom, right, top: The edges.
            colour: A role of the palette.
            label: A text in the upper left corner.
        """
        style: dict[str, Any] = {"edgecolor": "#8a8f94", "linewidth": 1.2, "zorder": 0.5, "radius": 0.12}
        rounded(self.ax, (left, bottom), (right - left, top - bottom), facecolor=colour_of(colour), **style)
        if label:
            self.ax.text(left + 0.1, top - 0.09, label, size=TEXT, va="top", weight="bold")
        self.take(left, bottom, right, top)

    def arrow(self, *points: Point, **settings: Any) -> None:
        """Draw an arrow through two or more points. The settings are those of boxes.arrow."""
        arrow(self.ax, *points, **settings)
        for x, y in points:
            self.take(x - 0.04, y - 0.04, x + 0.04, y + 0.04)

    def sign(
        self, x: float, y: float, text: str = "+", *, radius: float = 0.13, colour: str = "plain"
    ) -> Box:
        """Draw a circle with a sign, such as + where two arrows add, and return it as a box for arrows.

        Args:
            x, y, radius: The centre and the radius.
            text, colour: The sign, and a role of the palette.
        """
        self.take(x - 0.15, y - 0.15, x + 0.15, y + 0.15)
        circle = Circle((x, y), radius, facecolor=colour_of(colour), edgecolor=COLOURS["ink"], linewidth=1.2)
        circle.set(zorder=3, clip_on=False)
        self.ax.add_patch(circle)
        self.ax.text(x, y, text, size=13, ha="center", va="center_baseline", zorder=4)
        return Box("", x, y, 2 * radius, 2 * radius)

    def bracket(self, x: float, bottom: float, top: float, side: str = "left") -> None:
        """Draw a round bracket.

        Args:
            x, bottom, top: The horizontal position, and the two ends.
            side: "left" for an opening bracket, "right" for a closing one.
        """
        out = -0.14 if side == "left" else 0.14
        path = Path([(x - out / 2, top), (x + out, (bottom + top) / 2), (x - out / 2, bottom)], [1, 3, 3])
        curve = PathPatch(path, facecolor="none", edgecolor=COLOURS["ink"], linewidth=1.8, clip_on=False)
        self.ax.add_patch(curve)
        self.take(x - 0.1, bottom, x + 0.1, top)

    def mark(self, left: float, bottom: float, right: float, top: float) -> None:
        """Draw an orange frame around cells.

        Args:
            left, bottom, right, top: The edges of the cells.
        """
        ring = Rectangle((left, bottom), right - left, top - bottom, clip_on=False, facecolor="none")
        ring.set(edgecolor=COLOURS["highlight"], linewidth=2.4, zorder=5.5)
        self.ax.add_patch(ring)
        self.take(left - 0.02, bottom - 0.02, right + 0.02, top + 0.02)

    def take(self, left: float, bottom: float, right: float, top: float) -> None:
        """Record that the drawing takes up a rectangle.

        Args:
            left, bottom, right, top: The edges.
        """
        self.low = np.minimum(self.low, (left, bottom))
        self.high = np.maximum(self.high, (right, top))

    def cut(self, title: str | None = None, *, what: str = "this picture") -> Figure:
        """Return the figure, cut to the size of the drawing.

        Raises:
            UserError: If the drawing is larger than a slide.
        """
        width, height = self.high - self.low
        _, left = titled_figure(width, height, title, what=what, figure=self.figure)
        total, full = self.figure.get_size_inches()
        self.ax.set_position((left / total, PAD / full, width / total, height / full))
        self.ax.set_xlim(self.low[0], self.high[0])
        self.ax.set_ylim(self.low[1], self.high[1])
        return self.figure


@contextmanager
def new_board(
    *texts: Texts,
    matrices: Sequence[ArrayLike] = (),
    title: str | None = None,
    what: str = "this picture",
    **settings: Any,
) -> Iterator[Board]:
    """Return a context with a board, which is cut to the size of the drawing at the end.

    Args:
        texts: Strings, None, or lists of them: the words that are drawn, for which fonts are chosen.
        matrices: The arrays whose numbers must fit into the cells.
        title, what: A title above the picture, and the name of the picture in error messages.
        settings: Other arguments of Board.

    Raises:
        UserError: If the drawing is larger than a slide, or no installed font has a character.
    """
    with drawing(*texts):
        board = Board(matrices, **settings)
        yield board
        board.cut(title, what=what)


def paler(role: str, share: float = 0.5) -> str:
    """Return the colour of a role mixed with white. With share 1 it is the colour itself, with 0 white."""
    red, green, blue = 1 - share * (1 - np.array(to_rgb(colour_of(role))))
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
