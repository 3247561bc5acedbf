"""Room on paper, in inches: new figures, axes at a place, sheets for schematics, and checks of inputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from npformer.backend import to_numpy
from npformer.errors import UserError
from npformer.plots.style import (
    TITLE,
    line_height,
    printable,
    text_size,
    wrapped,
)

MAX_SIDE = 13.3  # inches, the width of a slide: 8 points on it can still be read
PAD = 0.12  # between one thing and the next, and round the edge


def new_figure(width: float, height: float, what: str = "this picture") -> Figure:
    """An empty figure of so many inches. Errors: UserError if a side is over MAX_SIDE."""
    if max(width, height) > MAX_SIDE:
        raise UserError(
            f"{what} does not fit: it needs {width:.1f} × {height:.1f} inches with letters of 8 points, and "
            f"{MAX_SIDE} is the limit; draw fewer, or a part of it"
        )
    figure = Figure(figsize=(width, height), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """New axes at a place in a figure, all in inches."""
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, bottom / h, width / w, height / h))


def size_of(ax: Axes) -> tuple[float, float]:
    """Width and height of axes, in inches."""
    box = ax.get_window_extent()
    return box.width / root(ax).dpi, box.height / root(ax).dpi


def root(ax: Axes) -> Figure:
    """The whole figure that axes are in."""
    figure: Any = ax.figure
    return figure.figure  # that of a subfigure is the figure round it, that of a figure itself


def sheet(
    width: float,
    height: float,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    what: str = "this picture",
) -> Axes:
    """Bare axes in which one unit is one inch, x from 0 to width and y from 0 (below) to height.

    On given axes the drawing keeps its size and stands in their middle.
    Errors: UserError where it does not fit.
    """
    if ax is None:
        title = wrapped(title, max(width, 2.5))
        title_width, title_height = title_room(title)
        total = max(width, title_width) + 2 * PAD
        figure = new_figure(total, height + title_height + 2 * PAD, what)
        ax = axes_at(figure, (total - width) / 2, PAD, width, height)
        if title:
            put_title(figure, title)
    elif title:
        ax.set_title(wrapped(title, size_of(ax)[0]))
    have_width, have_height = size_of(ax)
    if width > have_width + 1e-6 or height > have_height + 1e-6:
        raise UserError(
            f"{what} needs {width:.1f} × {height:.1f} inches with letters of 8 points, and the axes have "
            f"{have_width:.1f} × {have_height:.1f}: make them larger, or draw a part of it"
        )
    ax.set_axis_off()
    ax.set_xlim((width - have_width) / 2, (width + have_width) / 2)
    ax.set_ylim((height - have_height) / 2, (height + have_height) / 2)
    return ax


def title_room(title: str | None) -> tuple[float, float]:
    """Width and height in inches that a title takes, with the space under it."""
    if not title:
        return 0.0, 0.0
    width, height = text_size(title, TITLE, math=True)
    return width, height + PAD


def put_title(figure: Figure, title: str) -> None:
    """Write a title in the middle of the upper edge."""
    _, height = figure.get_size_inches()
    figure.text(0.5, 1 - PAD / height, title, size=TITLE, ha="center", va="top")


# What callers give.


def array(values, name: str, ndim: int) -> np.ndarray:
    """A copy of the caller's numbers on the host. Errors: UserError for other axes, or complex."""
    try:
        made = np.array(to_numpy(values))
    except ValueError:
        raise UserError(f"{name} has rows of different lengths: give an array") from None
    if made.dtype.kind not in "biuf":
        raise UserError(f"{name} holds {made.dtype}: give real numbers")
    if made.ndim != ndim or made.size == 0:
        raise UserError(f"{name} has shape {made.shape}: give an array with {ndim} axes, none of them empty")
    return made


def words(given: Sequence[str] | None, count: int, name: str) -> list[str]:
    """The words as they are drawn, the numbers 0 .. count - 1 for None.

    Errors: UserError for one text in place of a list, or another number of words.
    """
    if given is None:
        return [str(index) for index in range(count)]
    if isinstance(given, str):
        raise UserError(f"{name} is one text, {given!r}: give a list of words")
    made = [printable(str(word)) for word in given]
    if len(made) != count:
        raise UserError(f"{name} has {len(made)} words, and the array {count} rows or columns for them")
    return made


def mask_array(mask, shape: tuple[int, ...]) -> np.ndarray:
    """A mask of that shape, True where a query may look. Errors: UserError for another dtype or shape."""
    if mask is None:
        return np.ones(shape, bool)
    mask = to_numpy(mask)
    while mask.ndim > len(shape) and len(mask) == 1:  # (1, 1, T, S), as a model makes them
        mask = mask[0]
    if mask.dtype != bool:
        raise UserError(f"the mask holds {mask.dtype}: give bool, True where a query may look")
    try:
        return np.broadcast_to(mask, shape).copy()
    except ValueError:
        raise UserError(f"the mask has shape {mask.shape}: it must broadcast to {shape}") from None


def word_line(size: float) -> float:
    """The least height of a row that holds a word, in inches."""
    return line_height(size) * 1.12
