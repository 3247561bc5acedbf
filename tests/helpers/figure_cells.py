"""Functions that read a drawn figure: the numbers in its cells, the names beside them, and its text."""

import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from npformer.learn import figures
from npformer.plots.palette import colour

GAP = 0.07  # the distance between cells and their name


class Cells(NamedTuple):
    """A grid as it is drawn, its first row at the top."""

    values: np.ndarray  # (N, M): the numbers shown in the cells, NaN for a cell without one
    faces: np.ndarray  # (N, M, 3)
    left: float
    bottom: float
    right: float
    top: float

    def painted(self, role):
        """Return the cells that have the colour of this role."""
        return np.isclose(self.faces, to_rgb(colour(role)), atol=1e-3).all(-1)


_drawn = {}
NO_MODELS = figures.Studio(folder=Path(os.devnull) / "models")  # a folder in which no model can be trained


def draw(id, studio=NO_MODELS, **changes):
    """Return a figure with its caption, which is drawn once for all tests. No test may change it."""
    key = (id, studio, repr(changes))
    if key not in _drawn:
        _drawn[key] = figures.draw(id, studio, **changes)
    return _drawn[key]


def picture(id, *studio, **changes):
    """Return the figure without its caption."""
    return draw(id, *studio, **changes).figure


def number(text):
    """Return the number in a cell, such as −.42 or ∞, or NaN for a word."""
    try:
        return float(text.replace("−", "-").replace("∞", "inf"))
    except ValueError:
        return np.nan


def texts(figure):
    """Return all text on the axes of a figure, then that on the figure itself."""
    everything = [*(text for ax in figure.axes for text in ax.texts), *figure.texts]
    return [text.get_text() for text in everything if text.get_text()]


def places(figure):
    """Return every text on the first axes as (text, x, y)."""
    return [(t.get_text(), *t.get_position()) for t in figure.axes[0].texts]


def grids(figure):
    """Return every grid of cells in drawing order."""
    ax = figure.axes[0]
    return [read_grid(c, places(figure)) for c in ax.collections if isinstance(c, PolyCollection)]


def read(id, **changes):
    """Return every grid of a figure from the top down, then from left to right."""
    return sorted(grids(picture(id, **changes)), key=lambda g: (-round(g.top + g.bottom, 1), g.left))


def read_grid(collection, labels):
    """Return the cells by their positions, not by the order in which they were drawn."""
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])  # (N·M, 4, 2)
    centres = corners.mean(1)
    columns = np.unique(centres[:, 0].round(4))
    rows = np.unique(centres[:, 1].round(4))[::-1]
    column = np.abs(centres[:, 0, None] - columns).argmin(1)
    row = np.abs(centres[:, 1, None] - rows).argmin(1)
    values, faces = np.full((len(rows), len(columns)), np.nan), np.empty((len(rows), len(columns), 3))
    faces[row, column] = collection.get_facecolor()[:, :3]
    for text, *place in labels:
        near = np.abs(centres - place).max(1)
        if near.min() < 0.01:
            values[row[near.argmin()], column[near.argmin()]] = number(text)
    return Cells(values, faces, *corners.min((0, 1)), *corners.max((0, 1)))


def named(figure):
    """Return the grids by the names above, below, left or right of their middle."""
    result = defaultdict(list)
    for cells in grids(figure):
        x, y = (cells.left + cells.right) / 2, (cells.bottom + cells.top) / 2
        beside = [
            (x, cells.top + GAP),
            (x, cells.bottom - GAP),
            (cells.left - GAP, y),
            (cells.right + GAP, y),
        ]
        for text, *place in places(figure):
            if "$" in text and any(np.allclose(place, at, atol=1e-6) for at in beside):
                result[text.replace("$", "").replace("{", "").replace("}", "")].append(cells)
    return result


def shows(cells, matrix, decimals=2):
    """Return whether a grid shows a matrix, up to the rounding of its numbers."""
    matrix = np.atleast_2d(matrix)
    same = cells.values.shape == matrix.shape
    return same and bool(np.allclose(cells.values, matrix, rtol=0, atol=0.5 * 10**-decimals + 1e-9))


def same(shown, expected):
    """Check that numbers shown with two decimals are the expected ones."""
    expected = np.asarray(expected, np.float64)
    assert shown.shape == expected.shape, f"{shown.shape} is drawn, {expected.shape} expected"
    np.testing.assert_allclose(shown, expected, rtol=0, atol=0.00502)


def row_words(figure, cells):
    """Return the words at the left of a grid's rows, from the top."""
    step = (cells.top - cells.bottom) / len(cells.values)
    heights = cells.top - step * (np.arange(len(cells.values)) + 0.5)
    at = {(round(x, 6), round(y, 6)): text for text, x, y in places(figure)}
    return [at.get((round(cells.left - GAP, 6), round(y, 6))) for y in heights]


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
