"""Layout in inches: figures, axes, sheets for schematics, titles, and checks of the callers' arguments."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from npformer.backend import to_numpy
from npformer.errors import UserError, quantity
from npformer.plots.style import TITLE, line_height, text_size, visible, wrapped
from npformer.validation import short

MAX_SIDE = 13.3  # inches, the width of a slide, on which 8 points can still be read
PAD = 0.12  # between neighbouring parts, and along the edge
LEAST_TITLE = 2.5  # inches; a title above a narrower drawing may be as wide as this


def new_figure(
    width: float,
    height: float,
    what: str = "this picture",
    *,
    title: str | None = None,
    line_width: float | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Return a figure for a drawing of this size in inches, with a title above it if one is given.

    Args:
        width, height: The size of the figure, in inches, without the title.
        what: The name of the picture in error messages.
        title, line_width: The title, and the width at which it is broken into lines, in inches. By default
            it is that of the figure without its margins.
        figure: A figure that gets this size, instead of a new one.

    Raises:
        UserError: If a side is longer than MAX_SIDE.
    """
    title = wrapped(title, width - 2 * PAD if line_width is None else line_width)
    height += title_room(title)[1]
    if max(width, height) > MAX_SIDE:
        raise UserError(
            f"{what} does not fit: it needs {width:.1f} × {height:.1f} inches with letters of 8 points, and "
            f"no side may exceed {MAX_SIDE}; draw fewer elements, or a part of the picture"
        )
    if figure is None:
        figure = Figure(dpi=100, facecolor="white")
        FigureCanvasAgg(figure)
    figure.set_size_inches(width, height)
    _put_title(figure, title)
    return figure


def titled_figure(
    width: float,
    height: float,
    title: str | None,
    *,
    what: str = "this picture",
    line_width: float | None = None,
    figure: Figure | None = None,
) -> tuple[Figure, float]:
    """Return a figure with a margin around a drawing, and the left edge of the drawing in inches.

    The drawing is centred below the title. Its lower edge is PAD above that of the figure.

    Args:
        width, height: The size of the drawing, in inches.
        title, what, figure: As for `new_figure`.
        line_width: The width at which the title is broken into lines, in inches. By default it is that of the
            drawing, and at least LEAST_TITLE.
    """
    title = wrapped(title, max(width, LEAST_TITLE) if line_width is None else line_width)
    title_width, title_height = title_room(title)
    total = max(width, title_width) + 2 * PAD
    figure = new_figure(total, height + title_height + 2 * PAD, what, figure=figure)
    _put_title(figure, title)
    return figure, (total - width) / 2


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in a figure, all in inches, and return them.

    Args:
        figure: The figure.
        left, bottom: The lower left corner.
        width, height: The size.
    """
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, bottom / h, width / w, height / h))


def write_at(figure: Figure, x: float, y: float, text: str, **style: Any) -> None:
    """Write text at a place in a figure, in inches, and in its middle unless `style` says otherwise.

    Args:
        figure: The figure.
        x, y: The place.
        text: The text.
        style: Settings of matplotlib's Text.
    """
    w, h = figure.get_size_inches()
    figure.text(x / w, y / h, text, **({"ha": "center", "va": "center"} | style))


def size_of(ax: Axes) -> tuple[float, float]:
    """Return width and height of axes, in inches."""
    box = ax.get_window_extent()
    return box.width / root(ax).dpi, box.height / root(ax).dpi


def root(ax: Axes) -> Figure:
    """Return the whole figure that contains the axes."""
    # the .figure of a subfigure is the figure around it, the .figure of a figure is itself
    whole: Figure = ax.figure.figure
    return whole


def entitle(ax: Axes, title: str | None) -> None:
    """Write a title above axes that the caller gave, broken into lines at their width."""
    if title:
        ax.set_title(wrapped(title, size_of(ax)[0]))


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
        width, height: The size, in inches.
        ax: Axes to draw on; by default those of a new figure.
        title, what: As for `new_figure`.

    Raises:
        UserError: If the sheet does not fit on the given axes or in a figure.
    """
    if ax is None:
        figure, left = titled_figure(width, height, title, what=what)
        ax = axes_at(figure, left, PAD, width, height)
    else:
        entitle(ax, title)
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


def title_room(title: str) -> tuple[float, float]:
    """Return width and height of a title in inches, with the space below it."""
    if not title:
        return 0.0, 0.0
    width, height = text_size(title, TITLE, math=True)
    return width, height + PAD


def _put_title(figure: Figure, title: str) -> None:
    """Write a title, if it is not empty, at the middle of the upper edge."""
    if title:
        _, height = figure.get_size_inches()
        figure.text(0.5, 1 - PAD / height, title, size=TITLE, ha="center", va="top")


# Checks of the callers' arguments.


def array(values: Any, name: str, *ndims: int) -> np.ndarray:
    """Return a copy of the caller's numbers as a NumPy array.

    Args:
        values, name: The caller's numbers, and their name in error messages.
        ndims: The number of axes that the array must have, or several such numbers.

    Raises:
        UserError: If the number of axes is wrong, the array is empty, or the numbers are not real.
    """
    try:
        numbers = np.array(to_numpy(values))
    except ValueError:
        raise UserError(f"{name} has rows of different lengths: give an array") from None
    if numbers.dtype.kind not in "biuf":
        raise UserError(f"{name} holds {numbers.dtype}: give real numbers")
    if numbers.ndim not in ndims or numbers.size == 0:
        axes = " or ".join([*map(str, ndims[:-1]), quantity(ndims[-1], "axis", "axes")])
        raise UserError(f"{name} has shape {numbers.shape}: give {axes}, none of them empty")
    return numbers


def words(given: Sequence[str] | None, count: int, name: str) -> list[str]:
    """Return labels in printable form, or the numbers 0 .. count - 1 as labels for None.

    Args:
        given, name: The labels, or None, and their name in error messages.
        count: The number of rows or columns to be labelled.

    Raises:
        UserError: If one text is given instead of a list, or the number of labels is wrong.
    """
    if given is None:
        return [str(index) for index in range(count)]
    if isinstance(given, str):
        raise UserError(f"{name} is a single string, {given!r}: give a list of labels")
    if not np.iterable(given):
        raise UserError(f"{name} is {short(given)}: give a list of labels")
    labels = [visible(str(word)) for word in given]
    if len(labels) != count:
        raise UserError(
            f"{name} has {quantity(len(labels), 'label')}: give {count}, one for each row or column"
        )
    return labels


def mask_array(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask of this shape, True where a query may attend; all True for None.

    Raises:
        UserError: If the dtype is not bool, or the shape does not broadcast.
    """
    if mask is None:
        return np.ones(shape, bool)
    try:
        mask = to_numpy(mask)
    except ValueError:
        raise UserError("the mask has rows of different lengths: give an array") from None
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
