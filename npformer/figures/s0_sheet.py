"""What the figures of the first document share: rows of matrices, and matrices with painted cells."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from npformer.errors import UserError
from npformer.plots import Grid
from npformer.plots.board import BETWEEN, SIGN, Board
from npformer.plots.cells import GAP, Placed
from npformer.plots.palette import colour as colour_of
from npformer.plots.palette import ink_on
from npformer.plots.style import FORMULA, TEXT, text_size, widest

Paint = tuple[str, Any]  # a role of the palette, and bool broadcastable to a matrix: True takes its colour
Part = Grid | tuple[Grid, Paint] | str


def paint(board: Board, grid: Grid, left: float, top: float, *painted: Paint) -> Placed:
    """Draw a grid with its upper left corner at a place, some cells in colours of their own.

    Words over the columns stand upright where they are wider than a cell.
    """
    first = len(board.ax.texts)  # the numbers are the first that is written
    upright = grid.columns is not None and widest(grid.columns, TEXT) + 0.04 > board.cell
    placed = board.grid(replace(grid, columns=None, label="") if upright else grid, left, top)
    squares, shape = board.ax.collections[-1], grid.values.shape
    faces: Any = np.array(squares.get_facecolor())[:, :3].reshape(*shape, 3)
    for role, where in painted:
        faces[np.broadcast_to(where, shape)] = to_rgb(colour_of(role))
    faces = faces.reshape(-1, 3)
    squares.set_facecolor([tuple(face) for face in faces])
    if grid.numbers:
        for text, face in zip(board.ax.texts[first : first + len(faces)], faces, strict=True):
            text.set_color(ink_on(face))
    if upright:
        _upright(board, grid, placed)
    return placed


def _upright(board: Board, grid: Grid, placed: Placed) -> None:
    """The words over the columns from below upwards, and the name over them."""
    assert grid.columns is not None
    for index, word in enumerate(grid.columns):
        x = placed.left + (index + 0.5) * board.cell
        style: Any = {"rotation": 90, "va": "bottom", "room": False, "parse_math": False}
        board.text(x, placed.top + GAP, word, **style)
    top = placed.top + GAP + widest(grid.columns, TEXT)
    board.take(placed.left, placed.top, placed.right, top)
    board.text(placed.centre[0], top + GAP, grid.label, size=FORMULA, va="bottom")


def row(board: Board, parts: Sequence[Part], left: float, y: float) -> list[Placed]:
    """Grids and the signs between them in a row, their middles at the height y; where the grids are.

    A pair (grid, paint) has cells in a colour of their own. The cells of the first grid start at `left`, its
    row words stand before it; later grids with row words get room for them.
    """
    placed: list[Placed] = []
    x = left
    for part in parts:
        if isinstance(part, str):
            width = text_size(part, SIGN, math=True)[0]
            board.text(x + width / 2, y, part, size=SIGN)
            x += width + BETWEEN
            continue
        grid, painted = part if isinstance(part, tuple) else (part, None)
        width, height = board.size(grid)
        if placed and grid.rows is not None:
            x += widest(grid.rows, TEXT) + GAP
        marks = [] if painted is None else [painted]
        placed.append(paint(board, grid, x, y + height / 2, *marks))
        x += width + BETWEEN
    return placed


def at_least(least: int, **numbers) -> None:
    """Errors: UserError for the first of the named numbers that is not whole, or under `least`."""
    for name, value in numbers.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise UserError(f"{name} is {value!r}: it must be a whole number, {least} or more")


def shape_of(matrix) -> str:
    """A matrix's shape as it is written: 7 × 6."""
    return " × ".join(map(str, np.shape(matrix)))


def listed(values, decimals: int = 2) -> str:
    """A few numbers as a caption writes them."""
    return ", ".join(f"{value:.{decimals}f}".replace("-", "−") for value in np.ravel(values))
