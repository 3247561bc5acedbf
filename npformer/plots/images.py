"""Attention over an image: which patches a query of a vision Transformer looks at."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from npformer.backend import Array
from npformer.errors import UserError
from npformer.plots.heat_maps import refuse_not_finite
from npformer.plots.layout import MAX_SIDE, array
from npformer.plots.palette import weight_map
from npformer.plots.style import TEXT, TITLE, drawing, line_height, number, text_size, wrapped
from npformer.validation import require_index, short

SIDE = 2.2  # inches of the longer side of an image
GAP, TOP = 0.25, 0.75  # inches between images, and above them
COLUMNS = 5


def image_attention(
    image: Array, weights: Array, *, query: tuple[int, int] | None = None, title: str | None = None
) -> Figure:
    """Draw an image, and over grey copies of it the attention of one query to its patches, for each head.

    A head's colours reach from 0 to its largest weight, which stands above it with the sum of all patches:
    the rest goes to the class vector.

    Args:
        image: The image, of shape (Y, X, 3) or (Y, X), with numbers from 0 to 1 or bytes.
        weights: The weights of the query for each head, of shape (H, P, Q): P rows of Q patches.
        query: The row and the column of the patch that asks, which gets a frame. The default is the class
            vector, which has no place.
        title: The title.

    Raises:
        UserError: If the arrays have other shapes or numbers, if there is no such patch, or if there are too
            many heads for a picture.
    """
    image, weights = array(image, "image", 2, 3), array(weights, "weights", 3).astype(np.float64)
    if image.ndim == 3 and image.shape[2] != 3:
        raise UserError(f"image has shape {image.shape}: give (Y, X, 3) or (Y, X)")
    if not (image.min() >= 0 and image.max() <= _white(image)):  # False for NaN as well
        raise UserError("image has numbers outside 0 .. 1: give numbers from 0 to 1, or bytes")
    refuse_not_finite(weights, "weights")
    if query is not None:
        if np.shape(query) != (2,):
            raise UserError(f"query is {short(query)}: give the row and the column of a patch")
        row, column = map(require_index, ("row", "column"), query, weights.shape[1:])
        query = row, column
    height, width = (SIDE * pixels / max(image.shape[:2]) for pixels in image.shape[:2])
    names = [f"head {head}\nup to {number(w.max())} of {number(w.sum())}" for head, w in enumerate(weights)]
    names = ["the class vector asks" if query is None else f"patch {query} asks", *names]
    n_panels = len(names)
    columns = min(n_panels, COLUMNS)
    n_rows = -(-n_panels // columns)
    with drawing(title or "", names):
        across = max(width, *(text_size(name, TEXT)[0] for name in names))  # of a panel with its name
        total = columns * (across + GAP) + GAP
        title = wrapped(title, total - 2 * GAP)
        above = 2 * GAP + title.count("\n") * line_height(TITLE)
        size = total, n_rows * (height + TOP) + above
        if max(size) > MAX_SIDE:
            raise UserError(
                f"{len(weights)} heads do not fit into a picture of {MAX_SIDE} inches: choose one with head="
            )
        figure = Figure(size)
        if title:
            figure.text(GAP / size[0], 1 - GAP / 2 / size[1], title, fontsize=TITLE, va="top")
        for panel, name in enumerate(names):
            row, column = divmod(panel, columns)
            left = GAP + column * (across + GAP) + (across - width) / 2
            bottom = size[1] - above - (row + 1) * (height + TOP) + TOP / 2
            axes = figure.add_axes((left / size[0], bottom / size[1], width / size[0], height / size[1]))
            _draw(axes, image, None if panel == 0 else weights[panel - 1])
            axes.set_title(name, fontsize=TEXT)
            if query is not None:
                _frame(axes, image.shape, weights.shape[1:], query)
        return figure


def _draw(axes: Any, image: Array, weights: Array | None) -> None:
    """Draw an image, or its grey copy under the weights of a head."""
    extent = (0, image.shape[1], image.shape[0], 0)
    draw = axes.imshow
    axes.set_axis_off()
    grey: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": _white(image), "extent": extent}
    if weights is None:
        draw(image, **grey)
        return
    draw(image.mean(-1) if image.ndim == 3 else image, **grey)
    draw(weights, cmap=weight_map(), vmin=0, alpha=0.7, extent=extent, interpolation="nearest")


def _white(image: Array) -> int:
    """Return the number of white in an image: 1, or 255 if the image has bytes."""
    return 255 if image.dtype.kind in "iu" else 1


def _frame(axes: Any, shape: Sequence[int], grid: Sequence[int], query: tuple[int, int]) -> None:
    """Draw a frame around the patch that asks."""
    height, width = shape[0] / grid[0], shape[1] / grid[1]
    corner = query[1] * width, query[0] * height
    axes.add_patch(Rectangle(corner, width, height, fill=False, color="black", lw=2))
