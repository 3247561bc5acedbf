"""Layout in inches: figures, axes, sheets for schematics, titles, and checks of the callers' arguments."""

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
    text_size,
    visible,
    wrapped,
)

MAX_SIDE = 13.3  # inches, the width of a slide, on which 8 points can still be read
PAD = 0.12  # between neighbouring parts, and along the edge


def new_figure(width: float, height: float, what: str = "this picture") -> Figure:
    """Return an empty figure of this size in inches.

    Args:
        width: The width, in inches.
        height: The height, in inches.
        what: The name of the picture in error messages.

    Raises:
        UserError: If a side is longer than MAX_SIDE.
    """
    if max(width, height) > MAX_SIDE:
        raise UserError(
            f"{what} does not fit: it needs {width:.1f} × {height:.1f} inches with letters of 8 points, and "
            f"{MAX_SIDE} is the limit; draw fewer, or a part of it"
        )
    figure = Figure(figsize=(width, height), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in a figure, all in inches, and return them.

    Args:
        figure: The figure.
        left: The left edge.
        bottom: The lower edge.
        width: The width.
        height: The height.
    """
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, bottom / h, width / w, height / h))


def size_of(ax: Axes) -> tuple[float, float]:
    """Return width and height of axes, in inches."""
    box = ax.get_window_extent()
    return box.width / root(ax).dpi, box.height / root(ax).dpi


def root(ax: Axes) -> Figure:
    """Return the whole figure that contains the axes."""
    whole: Figure = (
        ax.figure.figure
    )  # a subfigure's .figure is the figure around it, a figure's .figure is itself
    return whole


def sheet(
    width: float,
    height: float,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    what: str = "this picture",
) -> Axes:
    """Return bare axes in which one unit is one inch, x from 0 to width and y from 0 (bottom) to height.

    On given axes the drawing keeps its size and is centred.

    Args:
        width: The width in inches.
        height: The height in inches.
        ax: Axes to draw on; by default those of a new figure.
        title: A title above the picture.
        what: The name of the picture in error messages.

    Raises:
        UserError: If the sheet does not fit on the given axes or in a figure.
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
    """Return width and height of a title in inches, with the space below it."""
    if not title:
        return 0.0, 0.0
    width, height = text_size(title, TITLE, math=True)
    return width, height + PAD


def put_title(figure: Figure, title: str) -> None:
    """Write a title at the middle of the upper edge."""
    _, height = figure.get_size_inches()
    figure.text(0.5, 1 - PAD / height, title, size=TITLE, ha="center", va="top")


# Checks of the callers' arguments.


def array(values: Any, name: str, ndim: int) -> np.ndarray:
    """Return a copy of the caller's numbers as a NumPy array.

    Args:
        values: The caller's numbers.
        name: Their name in error messages.
        ndim: The number of axes that the array must have.

    Raises:
        UserError: If the number of axes is wrong, the array is empty, or the numbers are not real.
    """
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
    """Return labels as they are drawn, or the numbers 0 .. count - 1 for None.

    Args:
        given: The labels, or None.
        count: The number of rows or columns to be labelled.
        name: The name of the labels in error messages.

    Raises:
        UserError: If one text is given instead of a list, or the number of labels is wrong.
    """
    if given is None:
        return [str(index) for index in range(count)]
    if isinstance(given, str):
        raise UserError(f"{name} is one text, {given!r}: give a list of labels")
    made = [visible(str(word)) for word in given]
    if len(made) != count:
        raise UserError(f"{name} has {len(made)} labels, but the array has {count} rows or columns for them")
    return made


def mask_array(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask of this shape, True where a query may attend; all True for None.

    Raises:
        UserError: If the dtype is not bool, or the shape does not broadcast.
    """
    if mask is None:
        return np.ones(shape, bool)
    mask = to_numpy(mask)
    while mask.ndim > len(shape) and len(mask) == 1:  # (1, 1, T, S), as a model makes them
        mask = mask[0]
    if mask.dtype != bool:
        raise UserError(f"the mask holds {mask.dtype}: give bool, True where a query may attend")
    try:
        return np.broadcast_to(mask, shape).copy()
    except ValueError:
        raise UserError(f"the mask has shape {mask.shape}: it must broadcast to {shape}") from None


def word_line(size: float) -> float:
    """Return the smallest height of a row with text, in inches."""
    return line_height(size) * 1.12
