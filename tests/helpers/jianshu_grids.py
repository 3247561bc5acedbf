"""Functions that read numbers from the artists of a picture."""

from typing import NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from npformer.plots.palette import colour


class Read(NamedTuple):
    """A grid as it is drawn, its first row at the top."""

    values: np.ndarray  # (N, M): the numbers shown in the cells, NaN for a cell without one
    faces: np.ndarray  # (N, M, 3)
    left: float
    top: float
    right: float
    bottom: float

    def painted(self, role):
        """Return the cells that have the colour of this role."""
        return np.isclose(self.faces, to_rgb(colour(role)), atol=1e-3).all(-1)


def number(text):
    """Return the number in a cell, or NaN for a word."""
    try:
        return float(text.replace("−", "-").replace("∞", "inf"))
    except ValueError:
        return np.nan


def grids(figure):
    """Return every grid of cells of a figure, from the top down, then from left to right."""
    ax = figure.axes[0]
    labels = [(text.get_position(), number(text.get_text())) for text in ax.texts]
    found = [read_grid(c, labels) for c in ax.collections if isinstance(c, PolyCollection)]
    return sorted(found, key=lambda grid: (-round(grid.top + grid.bottom, 1), grid.left))


def read_grid(collection, labels):
    """Return the cells by their positions, not by the order in which they were drawn."""
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])  # (N·M, 4, 2)
    centres = corners.mean(1)
    columns = np.unique(centres[:, 0].round(4))
    rows = np.unique(centres[:, 1].round(4))[::-1]
    column = np.abs(centres[:, 0, None] - columns).argmin(1)
    row = np.abs(centres[:, 1, None] - rows).argmin(1)
    shape = (len(rows), len(columns))
    values, faces = np.full(shape, np.nan), np.empty((*shape, 3))
    faces[row, column] = collection.get_facecolor()[:, :3]
    for (x, y), value in labels:
        near = np.abs(centres - (x, y)).max(1)
        if near.min() < 0.01:
            values[row[near.argmin()], column[near.argmin()]] = value
    low, high = corners.min((0, 1)), corners.max((0, 1))
    return Read(values, faces, low[0], high[1], high[0], low[1])


def heat(ax):
    """Return the parts of a heat map: the colours' numbers, NaN where masked; the text; queries; keys."""
    image = ax.images[0].get_array()
    colours = np.where(np.ma.getmaskarray(image), np.nan, image.data)
    numbers = np.full(image.shape, np.nan)
    for text in ax.texts:
        column, row = text.get_position()
        numbers[round(row), round(column)] = number(text.get_text())
    queries = [label.get_text() for label in ax.get_yticklabels()]
    return colours, numbers, queries, [label.get_text() for label in ax.get_xticklabels()]


def texts(figure):
    """Return all text on the axes of a figure or on the figure itself."""
    return [text.get_text() for ax in figure.axes for text in ax.texts] + [t.get_text() for t in figure.texts]


def same(shown, expected):
    """Check that numbers shown with two decimals are the expected ones."""
    expected = np.asarray(expected, np.float64)
    assert shown.shape == expected.shape, f"{shown.shape} is drawn, {expected.shape} expected"
    np.testing.assert_allclose(shown, expected, rtol=0, atol=0.00502)
