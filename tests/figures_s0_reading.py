"""Reading numbers back from the artists of a picture, for the tests of figures."""

from typing import NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from npformer.plots.palette import colour


class Read(NamedTuple):
    """A grid as it stands on paper, its first row on top."""

    values: np.ndarray  # (N, M) what the numbers in the cells say; NaN where a cell has none
    faces: np.ndarray  # (N, M, 3)
    left: float
    top: float
    right: float
    bottom: float

    def painted(self, role):
        """Which cells have the colour of this role."""
        return np.isclose(self.faces, to_rgb(colour(role)), atol=1e-3).all(-1)


def number(text):
    """The number that a cell says, NaN for a word."""
    try:
        return float(text.replace("−", "-").replace("∞", "inf"))
    except ValueError:
        return np.nan


def grids(figure):
    """Every grid of cells of a figure, those above first, then from left to right."""
    ax = figure.axes[0]
    said = [(text.get_position(), number(text.get_text())) for text in ax.texts]
    found = [read_grid(c, said) for c in ax.collections if isinstance(c, PolyCollection)]
    return sorted(found, key=lambda grid: (-round(grid.top + grid.bottom, 1), grid.left))


def read_grid(collection, said):
    """Cells by where they stand, not by the order in which they were drawn."""
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])  # (N·M, 4, 2)
    centres = corners.mean(1)
    columns = np.unique(centres[:, 0].round(4))
    rows = np.unique(centres[:, 1].round(4))[::-1]
    column = np.abs(centres[:, 0, None] - columns).argmin(1)
    row = np.abs(centres[:, 1, None] - rows).argmin(1)
    shape = (len(rows), len(columns))
    values, faces = np.full(shape, np.nan), np.empty((*shape, 3))
    faces[row, column] = collection.get_facecolor()[:, :3]
    for (x, y), value in said:
        near = np.abs(centres - (x, y)).max(1)
        if near.min() < 0.01:
            values[row[near.argmin()], column[near.argmin()]] = value
    low, high = corners.min((0, 1)), corners.max((0, 1))
    return Read(values, faces, low[0], high[1], high[0], low[1])


def heat(ax):
    """A heat map: (its colours' numbers, NaN where masked; numbers written; words of queries, of keys)."""
    image = ax.images[0].get_array()
    colours = np.where(np.ma.getmaskarray(image), np.nan, image.data)
    written = np.full(image.shape, np.nan)
    for text in ax.texts:
        column, row = text.get_position()
        written[round(row), round(column)] = number(text.get_text())
    queries = [label.get_text() for label in ax.get_yticklabels()]
    return colours, written, queries, [label.get_text() for label in ax.get_xticklabels()]


def texts(figure):
    """All that is written on the axes of a figure, or on the figure itself."""
    return [text.get_text() for ax in figure.axes for text in ax.texts] + [t.get_text() for t in figure.texts]


def same(shown, expected):
    """Whether what is shown with two decimals are these numbers."""
    expected = np.asarray(expected, np.float64)
    assert shown.shape == expected.shape, f"{shown.shape} is drawn, {expected.shape} expected"
    np.testing.assert_allclose(shown, expected, rtol=0, atol=0.00502)
