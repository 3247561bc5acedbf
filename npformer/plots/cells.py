"""Matrices as coloured cells, as in The Illustrated Transformer, and their products."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from npformer.backend import to_numpy
from npformer.errors import UserError
from npformer.plots.layout import PAD, array, mask_array, root, sheet, words
from npformer.plots.palette import colour as colour_of
from npformer.plots.palette import edge as edge_of
from npformer.plots.palette import ink_on
from npformer.plots.style import FORMULA, SMALL, TEXT, drawing, line_height, number, text_size, widest

CELL = 0.27  # height and smallest width of a cell, in inches
GAP = 0.07  # between cells and the text around them


@dataclass(frozen=True)
class Grid:
    """A matrix to be drawn as cells.

    Attributes:
        matrix: The numbers, (N, M), or (M,) for one row.
        label: The name above it, which may hold mathtext ("$W^Q$").
        colour: A role of the palette.
        edge: The role of the colour of the lines, if it differs. A weight matrix, for example, has grey cells
            and lines in the colour of its product.
        rows: N row labels.
        columns: M column labels.
        numbers: Whether the values are written.
        decimals: The number of decimals.
        shade: Whether a cell is paler if its value is nearer to 0.
        mask: Bool, broadcastable to the matrix. Cells where it is False are dark grey.
        padded: Bool, (N,). Rows where it is True are green.
        painted: Pairs (role, mask): the cells where a mask is True have the colour of its role.
        show_shape: Whether the shape is written below.
    """

    matrix: Any
    label: str = ""
    colour: str = "x"
    edge: str | None = None
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    numbers: bool = False
    decimals: int = 2
    shade: bool = False
    mask: Any = None
    padded: Any = None
    painted: Sequence[tuple[str, Any]] = ()
    show_shape: bool = False

    @property
    def values(self) -> np.ndarray:
        """A copy of the matrix, (N, M)."""
        return np.atleast_2d(array(self.matrix, self.label or "the matrix", 1, 2))


class Placed(NamedTuple):
    """The rectangle in which the cells of a grid were drawn."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def centre(self) -> tuple[float, float]:
        """The centre of the rectangle."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2


class Extent(NamedTuple):
    """The space in inches that a grid or a sign takes: its cells, and the text on each side of them."""

    cell: float  # width of a cell; its height is CELL
    width: float
    height: float
    left: float
    right: float
    above: float
    below: float

    @property
    def total(self) -> float:
        """The width with all text."""
        return self.left + self.width + self.right


def cell_grid(
    matrix: ArrayLike, *, ax: Axes | None = None, title: str | None = None, **settings: Any
) -> Figure:
    """Draw a matrix as coloured cells.

    Args:
        matrix: The numbers, (N, M), or (M,) for one row.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.
        settings: Other attributes of Grid.

    Raises:
        UserError: If a setting has a wrong shape, or the grid does not fit.
    """
    return cell_product([Grid(matrix, **settings)], ax=ax, title=title)


def cell_product(parts: Sequence[Grid | str], *, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw grids and the signs between them in a row.

    For example, parts = [Grid(X, "X"), "×", Grid(W, "W"), "=", Grid(Q, "Q")] draws the product X W = Q.

    Args:
        parts: The grids and the signs, from left to right.
        ax, title: As for `cell_grid`.

    Raises:
        UserError: If there is no grid, or the row does not fit.
    """
    grids = [part for part in parts if isinstance(part, Grid)]
    if not grids:
        raise UserError("there is no grid to draw: give at least one")
    texts = [(g.label, g.rows, g.columns) for g in grids]
    with drawing(title, texts, [part for part in parts if isinstance(part, str)]):
        extents = [_extent(part) for part in parts]
        above = max(e.above + e.height / 2 for e in extents)
        below = max(e.below + e.height / 2 for e in extents)
        width = sum(e.total for e in extents) + 2 * PAD * (len(parts) - 1)
        ax = sheet(width, above + below, ax=ax, title=title, what="this row of matrices")

        def write(x: float, y: float, text: str, *, room: bool = True, **style: Any) -> None:
            ax.text(x, y, text, **({"ha": "center", "va": "center_baseline"} | style))

        x = 0.0
        for part, e in zip(parts, extents, strict=True):
            if isinstance(part, str):
                ax.text(x + e.width / 2, below, part, size=16, ha="center", va="center_baseline")
            else:
                left, top = x + e.left, below + e.height / 2
                draw_cells(ax, part, left, top, e.cell, partial(number, decimals=part.decimals))
                write_round(write, part, Placed(left, top - e.height, left + e.width, top), e.cell)
            x += e.total + 2 * PAD
        return root(ax)


def _extent(part: Grid | str) -> Extent:
    """Return the space in inches that a grid or a sign takes."""
    if isinstance(part, str):
        return Extent(0, text_size(part, 16, math=True)[0], 0, 0, 0, 0, 0)
    values = part.values
    rows, columns = values.shape
    cell = CELL
    if part.numbers:
        cell = max(cell, widest([number(v, part.decimals) for v in values.flat], SMALL) + GAP + 0.03)
    width, height = columns * cell, rows * CELL
    left = widest(words(part.rows, rows, "rows"), TEXT) + GAP if part.rows is not None else 0
    above = GAP
    if part.columns is not None:
        above += band_of(words(part.columns, columns, "columns"), cell) + GAP
    if part.label:
        above += text_size(part.label, FORMULA, math=True)[1] + GAP
    below = line_height(TEXT) + GAP if part.show_shape else 0
    label = text_size(part.label, FORMULA, math=True)[0]
    shape = text_size(f"{rows} × {columns}", TEXT)[0] if part.show_shape else 0
    side = max(0, (max(label, shape) - width) / 2)
    return Extent(cell, width, height, max(left, side), side, above, below)


def draw_cells(
    ax: Axes, grid: Grid, left: float, top: float, cell: float, write: Callable[..., str], above: float = 0
) -> None:
    """Draw the coloured cells of a grid and their numbers.

    Args:
        ax, grid: The axes of a sheet, and the grid.
        left, top: The upper left corner of the cells.
        cell: The width of a cell, in inches.
        write: A function that returns a number as text.
        above: A number that is added to the drawing order.
    """
    values = grid.values
    corners = np.array([[0, 0], [cell, 0], [cell, -CELL], [0, -CELL]])  # (4, 2)
    row, column = np.indices(values.shape).reshape(2, -1)
    starts = np.stack([left + column * cell, top - row * CELL], -1)  # (N·M, 2)
    colours = cell_colours(grid).reshape(-1, 3)  # (N·M, 3)
    edge = edge_of(grid.colour if grid.edge is None else grid.edge)
    squares = PolyCollection(
        starts[:, None] + corners, facecolors=colours, edgecolors=edge, linewidths=1.0, clip_on=False
    )
    squares.set_zorder(1 + above)
    ax.add_collection(squares, autolim=False)
    if grid.numbers:
        style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": 3 + above}
        style["label"] = f"table at {left:.2f}, {top:.2f}"
        for (x, y), value, face in zip(starts, values.flat, colours, strict=True):
            ax.text(x + cell / 2, y - CELL / 2, write(value), size=SMALL, color=ink_on(face), **style)


def cell_colours(grid: Grid) -> np.ndarray:
    """Return the colour of every cell. Shapes: -> (N, M, 3)."""
    values = grid.values
    full = np.array(to_rgb(colour_of(grid.colour)))
    strength = np.ones(values.shape)
    if grid.shade:
        size = np.abs(np.nan_to_num(values.astype(np.float64), posinf=0, neginf=0))
        strength = 0.08 + 0.92 * size / (size.max() or 1.0)
    colours: np.ndarray = 1 - strength[..., None] * (1 - full)  # towards white
    if grid.padded is not None:
        padded = to_numpy(grid.padded)
        if padded.dtype != bool or padded.shape != values.shape[:1]:
            raise UserError(f"padded must be bool with shape ({len(values)},), one for each row")
        colours[padded] = to_rgb(colour_of("padding"))
    for role, where in (("masked", ~mask_array(grid.mask, values.shape)), *grid.painted):
        colours[mask_array(where, values.shape)] = to_rgb(colour_of(role))
    return colours


def write_round(
    write: Callable[..., None], grid: Grid, placed: Placed, cell: float, label: str = "above"
) -> float:
    """Write row labels at the left, column labels above, the shape below, and the name on one side.

    Args:
        write: write(x, y, text, **style) writes a text. With room=False the caller sees to its space.
        grid, placed, cell: The grid, the place of its cells, and the width of a cell in inches.
        label: The side of the name: "above", "below", "left" or "right".

    Returns:
        The upper edge of the column labels.
    """
    left, bottom, right, top = placed
    x, y = placed.centre
    rows, columns = grid.values.shape
    if grid.rows is not None:
        names = words(grid.rows, rows, "rows")
        for index, word in enumerate(names):
            write(left - GAP, top - (index + 0.5) * CELL, word, ha="right", parse_math=False)
        left -= widest(names, TEXT) + GAP
    if grid.columns is not None:
        names = words(grid.columns, columns, "columns")
        style: dict[str, Any] = {"rotation": 90 if _turned(names, cell) else 0, "parse_math": False}
        for index, word in enumerate(names):
            write(placed.left + (index + 0.5) * cell, top + GAP, word, va="bottom", room=False, **style)
        top += band_of(names, cell) + GAP
    if grid.show_shape:
        write(x, bottom - GAP, f"{rows} × {columns}", va="top", color=colour_of("faint"))
    at_x, at_y, ha, va = {
        "above": (x, top + GAP, "center", "bottom"),
        "below": (x, bottom - GAP, "center", "top"),
        "left": (left - GAP, y, "right", "center_baseline"),
        "right": (right + GAP, y, "left", "center_baseline"),
    }[label]
    if grid.label:
        write(at_x, at_y, grid.label, size=FORMULA, ha=ha, va=va)
    return top


def band_of(names: Sequence[str], cell: float) -> float:
    """Return the height of column labels, which are turned upright where they are wider than a cell."""
    return widest(names, TEXT) if _turned(names, cell) else line_height(TEXT)


def _turned(names: Sequence[str], cell: float) -> bool:
    return widest(names, TEXT) + 0.04 > cell
